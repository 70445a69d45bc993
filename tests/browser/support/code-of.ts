// Errors do not cross from a page to the test with their code; so pages and workers have the global `codeOf` to tell it.

/** The code of the VarveError that a call threw or rejects with; any other error in words; `ok` when there is none. */
export async function codeOf(call: () => unknown): Promise<string> {
  try {
    await call();
    return 'ok';
  } catch (error) {
    const { name, code } = error as { name?: unknown; code?: unknown };
    return name === 'VarveError' && typeof code === 'string' ? code : String(error);
  }
}
