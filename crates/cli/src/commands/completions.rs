use crate::context::Context;
use crate::failure::Result;
use crate::out::Out;
use clap::Args;
use clap_complete::{Shell, generate};

/// Print completions for a shell, of pmo and mkpmo
///
/// For bash, names of objects are completed, too.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmo completions bash > ~/.local/share/bash-completion/completions/pmo
  pmo completions zsh > ~/.zfunc/_pmo
  pmo completions fish > ~/.config/fish/completions/pmo.fish")]
pub struct Completions {
    /// Shell
    shell: Shell,
}

/// Completes names of objects after the pool's name, or of PMO_POOL's.
const OBJECTS: &str = r#"
_pmo_objects() {
    _pmo "$@"
    local current="${COMP_WORDS[COMP_CWORD]}" command= part= pool= word name at
    [[ $current == -* ]] && return
    # The value of an option.
    [[ ${COMP_WORDS[COMP_CWORD - 1]} == -?* && -n ${COMPREPLY[0]-} && ${COMPREPLY[0]} != -* ]] && return
    # Options are for those who began one.
    local all=("${COMPREPLY[@]}")
    COMPREPLY=()
    for word in "${all[@]}"; do
        [[ $word == -* ]] || COMPREPLY+=("$word")
    done
    for ((at = 1; at < COMP_CWORD; at++)); do
        word="${COMP_WORDS[at]}"
        if [[ $word == -?* ]]; then
            continue
        elif [[ -z $command ]]; then
            command=$word
        elif [[ $command == @(heap|key) && -z $part ]]; then
            part=$word
        elif [[ -z $pool ]]; then
            pool=$word
        elif [[ $command == dump && -z $part ]]; then
            part=$word
        fi
    done
    case $command in
    stat | put | cat | resize | mv | rm | attach-check | ls | metrics | top) ;;
    cp | set | snapshot | rollback | diff | tie | untie | types | migrate) ;;
    heap | key) [[ -n $part ]] || return ;;
    dump) [[ $part == object ]] || return ;;
    *) return ;;
    esac
    [[ -z $pool || $pool == - ]] && pool="${PMO_POOL-}"
    [[ -n $pool ]] || return
    while IFS= read -r name; do
        [[ $name == "$current"* ]] && COMPREPLY+=("$(printf %q "$name")")
    done < <(pmo ls "${pool/#\~\//$HOME/}" --columns name --no-header --quiet 2>/dev/null)
}
complete -F _pmo_objects -o nosort -o bashdefault -o default pmo
"#;

pub fn run(context: &Context, args: &Completions) -> Result {
    let [mut pmo, mut mkpmo] = (context.command_lines)();
    let mut text = Vec::new();
    generate(args.shell, &mut pmo, "pmo", &mut text);
    // zsh reads one command per file.
    if args.shell != Shell::Zsh {
        generate(args.shell, &mut mkpmo, "mkpmo", &mut text);
    }
    if args.shell == Shell::Bash {
        text.extend(OBJECTS.as_bytes());
    }
    let mut out = Out::new();
    out.bytes(&text)?;
    out.finish()
}
