/**
 * The package `varve/inspector`: the element `<varve-inspector>`, which shows the stores of an origin to their developer.
 *
 * Invariant: importing this defines the element and starts nothing. The code of its panel is loaded when it is first opened.
 */

import type { Panel } from './inspector/panel.ts';
import type { AnyStore } from './inspector/store.ts';

const NAME = 'varve-inspector';
const TITLE = 'Varve inspector';

/** A server has no elements: there the import does nothing. */
const Base = (globalThis.HTMLElement ?? Object) as typeof HTMLElement;

/**
 * The element `<varve-inspector>`: a line that opens to the keys, the engine and the changes of a store.
 *
 * Attributes: `open`; `name`, the name of the store that it opens (default: the first one of the origin); `view`, which is `keys`
 * (default), `engine` or `changes`.
 *
 * @example
 * import 'varve/inspector';
 * document.body.append(document.createElement('varve-inspector'));
 */
export class VarveInspector extends Base {
  /** @internal */
  static readonly observedAttributes = ['open', 'name', 'view'];
  readonly #details: HTMLDetailsElement;
  readonly #summary: HTMLElement;
  #panel: Promise<Panel | undefined> | undefined;
  #store: AnyStore | undefined;

  constructor() {
    super();
    const root = this.attachShadow({ mode: 'open' });
    this.#details = document.createElement('details');
    this.#summary = document.createElement('summary');
    this.#summary.textContent = TITLE;
    this.#details.append(this.#summary);
    this.#details.addEventListener('toggle', () => {
      this.open = this.#details.open;
    });
    root.append(this.#details);
  }

  /** Whether the panel is open: the attribute `open`. */
  get open(): boolean {
    return this.hasAttribute('open');
  }

  set open(isOpen: boolean) {
    this.toggleAttribute('open', isOpen);
  }

  /** A store of the page, which is shown first, with the codecs that it was opened with. The inspector does not close it. */
  get store(): AnyStore | undefined {
    return this.#store;
  }

  set store(store: AnyStore | undefined) {
    this.#store = store;
    this.#show();
  }

  /** @internal */
  connectedCallback(): void {
    // The page may have set the property before the element was defined.
    if (Object.hasOwn(this, 'store')) {
      const { store } = this;
      Reflect.deleteProperty(this, 'store');
      this.store = store;
    }
    this.#show();
  }

  /** @internal */
  disconnectedCallback(): void {
    this.#show();
  }

  /** @internal */
  attributeChangedCallback(): void {
    this.#details.open = this.open;
    this.#show();
  }

  async #show(): Promise<void> {
    if (!this.open || !this.isConnected) return (await this.#panel)?.hide();
    this.#panel ??= this.#load();
    const panel = await this.#panel;
    if (panel === undefined || !this.open || !this.isConnected) return;
    const name = this.getAttribute('name') ?? undefined;
    await panel.show({ store: this.#store, name, view: this.getAttribute('view') ?? 'keys' });
  }

  /** The panel; undefined where its code cannot be loaded, which the title shows. The next opening tries again. */
  async #load(): Promise<Panel | undefined> {
    const { Panel, styles } = await import('./inspector/panel.ts').catch((error) => {
      this.#panel = undefined;
      this.#summary.textContent = `${TITLE}: its code could not be loaded. ${error}`;
      return {} as Partial<typeof import('./inspector/panel.ts')>;
    });
    if (Panel === undefined || styles === undefined) return undefined;
    this.#summary.textContent = TITLE;
    const panel = new Panel((view) => this.setAttribute('view', view));
    this.shadowRoot?.adoptedStyleSheets.push(styles());
    this.#details.append(panel.root);
    return panel;
  }
}

declare global {
  interface HTMLElementTagNameMap {
    'varve-inspector': VarveInspector;
  }
}

if (globalThis.customElements?.get(NAME) === undefined) globalThis.customElements?.define(NAME, VarveInspector);
