// Counts the open resources of a realm that only the calls themselves reveal: memories of WebAssembly, handles of OPFS, connections to
// IndexedDB. Load this module before anything is opened.

const memories = new Set<WeakRef<WebAssembly.Memory>>();
const ports = new Set<WeakRef<MessagePort>>();
let handles = 0;
let connections = 0;

/** The number of open resources: call it after garbage was collected. */
export function counted(): Record<string, number> {
  let wasmBytes = 0;
  for (const memory of living(memories)) wasmBytes += memory.buffer.byteLength;
  return { wasmBytes, wasmMemories: memories.size, ports: living(ports).length, handles, connections };
}

/** Those that are not collected. */
function living<T extends object>(references: Set<WeakRef<T>>): T[] {
  const found: T[] = [];
  for (const reference of references) {
    const thing = reference.deref();
    if (thing === undefined) references.delete(reference);
    else found.push(thing);
  }
  return found;
}

/** Wraps a constructor of the realm; `seen` gets the new object. */
function watchMade<K extends 'MessageChannel'>(
  name: K,
  seen: (made: InstanceType<(typeof globalThis)[K]>) => void,
): void {
  const Original = globalThis[name];
  globalThis[name] = new Proxy(Original, {
    construct(target, args, derived) {
      const made = Reflect.construct(target, args, derived) as InstanceType<(typeof globalThis)[K]>;
      seen(made);
      return made;
    },
  });
}

/** Wraps a method; `seen` gets the receiver and the result. */
function watchCalls(prototype: object | undefined, method: string, seen: (on: object, answer: unknown) => void): void {
  if (prototype === undefined) return;
  const original = Reflect.get(prototype, method) as (...args: unknown[]) => unknown;
  Reflect.set(prototype, method, function (this: object, ...args: unknown[]) {
    const answer = original.apply(this, args);
    seen(this, answer);
    return answer;
  });
}

WebAssembly.Instance = new Proxy(WebAssembly.Instance, {
  construct(target, args, derived) {
    const made = Reflect.construct(target, args, derived) as WebAssembly.Instance;
    const { memory } = made.exports;
    if (memory instanceof WebAssembly.Memory) memories.add(new WeakRef(memory));
    return made;
  },
});

watchMade('MessageChannel', ({ port1, port2 }) => {
  ports.add(new WeakRef(port1));
  ports.add(new WeakRef(port2));
});

const open = new WeakSet<object>();

watchCalls(globalThis.FileSystemFileHandle?.prototype, 'createSyncAccessHandle', (_, answer) => {
  (answer as Promise<object>).then(
    (handle) => {
      open.add(handle);
      handles++;
    },
    () => undefined,
  );
});
watchCalls(globalThis.FileSystemSyncAccessHandle?.prototype, 'close', (handle) => {
  if (open.delete(handle)) handles--;
});
watchCalls(globalThis.IDBFactory?.prototype, 'open', (_, answer) => {
  const request = answer as IDBOpenDBRequest;
  request.addEventListener('success', () => {
    open.add(request.result);
    connections++;
  });
});
watchCalls(globalThis.IDBDatabase?.prototype, 'close', (database) => {
  if (open.delete(database)) connections--;
});
