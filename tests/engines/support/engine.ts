// A browser engine as a test sees it. It starts its browser on a profile that outlives it, opens pages, runs code in them, and ends them
// in every way. Invariant: no test asks which engine it runs in. Each difference between them is a field here.

/** A tab that shows `/engine.html`, which has the package and the helpers of the browser tests as globals. */
export interface Tab {
  /** The reports of the page and its workers so far: exceptions that nothing caught, refusals of the policy. */
  readonly errors: readonly string[];
  /** Runs a function in the page. It uses nothing from outside but its arguments; those and the result are JSON. */
  evaluate<A extends readonly unknown[], T>(run: (...args: A) => T | Promise<T>, ...args: A): Promise<T>;
  /** Calls `listener` with every line that the page writes with `console.debug`; of lines that come fast, the last is enough. */
  hear(listener: (text: string) => void): void;
  reload(): Promise<void>;
  /** Goes to another page of the site, `/away.html`, as a link does. */
  leave(): Promise<void>;
  /** Goes back from there; the page may return from the back/forward cache in the state it was left in. */
  back(): Promise<void>;
  /** Closes the tab as its user does. */
  close(): Promise<void>;
}

/** A running browser. */
export interface Browser {
  openTab(): Promise<Tab>;
  /** Kills the process that a tab's page and workers run in, as the system does when memory is short. */
  killTab(tab: Tab): Promise<void>;
  /** Makes that process crash by itself, where a browser does that on request. */
  crashTab?(tab: Tab): Promise<void>;
  /** Kills all processes of the browser at once. */
  kill(): Promise<void>;
  close(): Promise<void>;
}

/** Where `open` puts a new store, and what it reports when that is not OPFS. */
export interface Rung {
  readonly kind: 'opfs' | 'indexeddb';
  readonly reason?: RegExp;
}

/** Another way to start a browser, in which pages may have fewer features. */
export interface Mode {
  readonly title: string;
  readonly rung: Rung;
  readonly isPrivate?: boolean;
  /** More arguments of the command line. */
  readonly flags?: readonly string[];
}

/** How a browser is started. */
export interface LaunchOptions {
  readonly site: EngineSite;
  readonly mode?: Mode | undefined;
  /** Keeps pages that are left in the back/forward cache, where the driver would not. */
  readonly keepsPages?: boolean | undefined;
}

/** One engine, and which features of Varve are available in it. */
export interface Engine {
  readonly name: 'chromium' | 'firefox' | 'webkit';
  readonly rung: Rung;
  readonly modes: readonly Mode[];
  /** Where a shared worker puts a store: OPFS is available only where shared workers may start workers. */
  readonly sharedWorkerRung: 'opfs' | 'indexeddb';
  /** Whether tabs of one origin have processes of their own, so that one of them can be killed alone. */
  readonly hasTabProcesses: boolean;
  /** Whether transactions of IndexedDB end with the worker that began them: in WebKitGTK they may stay open, see TESTING.md. */
  readonly endsTransactions: boolean;
  /** Whether its browser has `crashTab`. */
  readonly canCrashTabs: boolean;
  /** Starts the browser on a profile in a folder, which it makes if there is none. */
  launch(directory: string, options: LaunchOptions): Promise<Browser>;
}

/** The site that the pages come from. Its origin stays the same while browsers come and go. */
export interface EngineSite {
  readonly origin: string;
  readonly remote: import('./remote.ts').Remote;
  close(): Promise<void>;
}
