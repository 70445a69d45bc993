/** A window: its listeners for the capture phase come before all others. In Node, an `EventTarget` has no phases. */
export class FakeWindow {
  readonly #phases = [new EventTarget(), new EventTarget()] as const;

  readonly addEventListener = (type: string, listener: () => void, options?: AddEventListenerOptions): void => {
    this.#phases[options?.capture ? 0 : 1].addEventListener(type, listener, options);
  };

  dispatchEvent(event: Event): void {
    for (const phase of this.#phases) phase.dispatchEvent(event);
  }
}
