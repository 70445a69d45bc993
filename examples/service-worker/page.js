import { open } from 'varve';

await navigator.serviceWorker.register('/sw.js', { type: 'module' });

// A service worker cannot open a store in OPFS, so both sides ask for IndexedDB.
const db = await open('inbox', { storage: 'indexeddb' });

// Shows the entries that the service worker stored before, and those that it stores from now on.
const messages = db.live({ prefix: ['message'], reverse: true, limit: 50 }, { initial: [] });
messages.subscribe((entries) => {
  const items = entries.map(([, text]) => Object.assign(document.createElement('li'), { textContent: text }));
  document.querySelector('ul').replaceChildren(...items);
});

document.querySelector('button').addEventListener('click', () => Notification.requestPermission());
