// Questions to the tool that serves this page.

const token = new URLSearchParams(location.search).get('token') || '';

class Failed extends Error {
  constructor(message, help) {
    super(message);
    this.help = help;
  }
}

async function ask(path, query) {
  let answer;
  try {
    answer = await fetch(`/api/${path}?${new URLSearchParams(query || {})}`, {
      headers: { 'X-Pmo-Token': token },
      cache: 'no-store',
    });
  } catch {
    throw new Failed('pmo inspect does not answer', 'it was ended, or cannot be reached: start it again');
  }
  if (answer.ok) return answer.json();
  if (answer.headers.get('Content-Type').startsWith('application/json')) {
    const { error, help } = await answer.json();
    throw new Failed(error, help);
  }
  throw new Failed((await answer.text()).trim(), null);
}

// Events a second from counters, each with the time at which it was read.
class Rates {
  constructor() {
    this.last = new Map();
  }

  of(key, count, at) {
    const last = this.last.get(key);
    if (last && last.at === at) return last.rate;
    const since = last && at > last.at && count >= last.count ? (count - last.count) / (at - last.at) : null;
    this.last.set(key, { count, at, rate: since });
    return since;
  }

  keep(keys) {
    const kept = new Set(keys);
    for (const key of this.last.keys()) if (!kept.has(key)) this.last.delete(key);
  }
}
