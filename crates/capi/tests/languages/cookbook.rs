//! The cookbook's pages, followed to the letter.

use super::ground::{CPP, disk, have, installed, project};
use indelible_testing::page::{blocks, follow};

fn follow_page(page: &str) {
    if !have("pkg-config") || !have("c++") {
        return;
    }
    let page = std::fs::read_to_string(project().join("docs/cookbook").join(page)).unwrap();
    let folder = disk();
    let compared = follow(&page, folder.path(), &["c", "cpp"], &|block| {
        assert_eq!(block, "cargo xtask install --prefix \"$HOME/.local\" --only libpmo\n");
        std::os::unix::fs::symlink(installed(), folder.path().join(".local")).unwrap();
    });
    assert!(compared >= 5, "only {compared} outputs were compared");
}

#[test]
fn the_page_for_c_is_true() {
    follow_page("c.md");
}

#[test]
fn the_page_for_cpp_is_true() {
    follow_page("cpp.md");
}

fn follow_parts(page: &str) -> Option<usize> {
    if !have("pkg-config") || !have("c++") {
        return None;
    }
    let page = std::fs::read_to_string(project().join("docs/cookbook").join(page)).unwrap();
    let folder = disk();
    let lib = installed().join("lib");
    let mut ours = format!(
        "```sh\nexport PKG_CONFIG_PATH={0}/pkgconfig LD_LIBRARY_PATH={0}\n```\n```text\n```\n",
        lib.display()
    );
    for (kind, block) in blocks(&page) {
        if ["sh", "text", "c", "cpp"].contains(&kind.as_str()) {
            ours += &format!("```{kind}\n{block}```\n");
        }
    }
    Some(follow(&ours, folder.path(), &["c", "cpp"], &|_| unreachable!()))
}

#[test]
fn the_page_on_sealed_objects_is_true_for_c_and_cpp() {
    assert!(follow_parts("sealed.md").is_none_or(|compared| compared == 5));
}

#[test]
fn the_page_on_far_pointers_is_true_for_c_and_cpp() {
    assert!(follow_parts("far.md").is_none_or(|compared| compared == 3));
}

#[test]
fn the_readme_compiles() {
    if !have("c++") {
        return;
    }
    let page = std::fs::read_to_string(project().join("README.md")).unwrap();
    let code = blocks(&page).into_iter().find(|(kind, _)| kind == "cpp").expect("a program in C++").1;
    let code = format!("#include <pmo.hpp>\nint main() {{\n{code}}}\n");
    assert_eq!(CPP.refuses(&code, disk().path()), None);
}
