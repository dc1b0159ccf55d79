// Views, chosen by the part of the address behind #; the visible one is refreshed.

const VIEWS = { overview, objects, object, space, snapshots, graph };
const main = document.getElementById('main');
const live = document.getElementById('live');
const banner = document.getElementById('error');
let [view, timer, turn] = [null, 0, 0];

function failed(error) {
  main.classList.toggle('stale', Boolean(error));
  banner.hidden = !error;
  put(banner, error ? visible([error.message, error.help, 'Trying again.'].filter(Boolean).join(' — ')) : '');
  live.classList.toggle('lost', Boolean(error));
  put(live, error ? 'not live' : 'live');
}

async function refresh() {
  clearTimeout(timer);
  const [mine, shown] = [(turn += 1), view];
  try {
    if (!document.hidden) {
      await shown.refresh();
      if (mine === turn) failed(null);
    }
  } catch (error) {
    if (mine === turn) failed(error);
  }
  if (mine === turn) timer = setTimeout(refresh, shown.every);
}

// A search or page is part of the address, without a step back for each letter.
function changed() {
  const [name] = location.hash.slice(2).split('?');
  history.replaceState(null, '', location.pathname + location.search + route(name || 'overview', view.place));
  refresh();
}

function open() {
  if (location.hash && !location.hash.startsWith('#/')) return;
  const [name, query] = (location.hash.slice(2) || 'overview').split('?');
  const build = Object.hasOwn(VIEWS, name) ? VIEWS[name] : overview;
  view = build(new URLSearchParams(query || ''), changed);
  main.replaceChildren(view.root);
  for (const link of document.querySelectorAll('nav a')) {
    const here = link.getAttribute('href') === `#/${name}`;
    if (here) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  refresh();
}

async function pathOnce() {
  try {
    const { shown } = await ask('overview');
    put(document.getElementById('path'), shown);
    document.title = `${shown} – pmo inspect`;
  } catch {
    setTimeout(pathOnce, 2000);
  }
}

addEventListener('hashchange', open);
document.addEventListener('visibilitychange', refresh);
open();
pathOnce();
