// Whether some order of calls explains what they answered and what is there after them: they are linearizable.

/** A call that was made together with others, and its answer. */
export interface Answered<C> {
  readonly call: C;
  readonly answer: string;
}

/** What a call makes of a state, and what it answers. */
export type Apply<S, C> = (state: S, call: C) => { readonly state: S; readonly answer: string };

/** Whether the calls, one after another in some order, answer what they did and end in a state that `isEnd` takes. */
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
