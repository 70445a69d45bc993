import { uuid7 } from 'varve/collections';
import { open } from 'varve/inline';

self.addEventListener('push', (event) => event.waitUntil(receive(event.data.text())));

/** Stores a message. The browser may end a service worker after each event, so the store is open during the event only. */
async function receive(text) {
  const db = await open('inbox', { storage: 'indexeddb' });
  try {
    await db.set(['message', uuid7()], text);
  } finally {
    await db.close();
  }
  if (Notification.permission === 'granted') await self.registration.showNotification(text);
}
