// Whether some order of calls explains their answers and the content after them: they are linearizable.

/** A call that was made together with others, and its answer. */
export interface Answered<C> {
  readonly call: C;
  readonly answer: string;
}

/** The effect of a call on a state, and its answer. */
export type Apply<S, C> = (state: S, call: C) => { readonly state: S; readonly answer: string };

/** Whether the calls, one after another in some order, give the answers they gave and end in a state that `isEnd` accepts. */
export function isExplained<S, C>(
  state: S,
  calls: readonly Answered<C>[],
  apply: Apply<S, C>,
  isEnd: (state: S) => boolean,
): boolean {
  if (calls.length === 0) return isEnd(state);
  return calls.some(({ call, answer }, i) => {
    const next = apply(state, call);
    return next.answer === answer && isExplained(next.state, calls.toSpliced(i, 1), apply, isEnd);
  });
}
