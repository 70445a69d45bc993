/** The refusal of a request, before a store sees it. */

import type { VarveErrorCode } from '../errors.ts';

/** Thrown for a request that is refused before a store sees it. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: VarveErrorCode | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    detail: string,
    code?: VarveErrorCode | undefined,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(detail);
    this.status = status;
    this.code = code;
    this.headers = headers;
  }
}

/** The refusal of an invalid request. */
export function malformed(detail: string, code: VarveErrorCode = 'VARVE_INVALID_ARGUMENT'): Refusal {
  return new Refusal(400, detail, code);
}
