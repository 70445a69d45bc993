/**
 * The parts of an SVG that every chart of the results has.
 *
 * Invariant: a chart needs no other file, and is readable in both themes. Blue, grey and orange are told apart by the colour-blind as well.
 */

/** How wide a chart is. */
export const WIDTH = 860;

/** A whole chart with its title. */
export function svgOf(title: string, height: number, parts: readonly string[]): string {
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escaped(title)}">`,
    `<title>${escaped(title)}</title>`,
    STYLE,
    `<text class="title" x="8" y="20">${escaped(title)}</text>`,
    ...parts,
    '</svg>',
  ].join('\n')}\n`;
}

/** A straight line of a class. */
export function line(kind: string, x1: number, y1: number, x2: number, y2: number): string {
  return `<line class="${kind}" x1="${place(x1)}" y1="${place(y1)}" x2="${place(x2)}" y2="${place(y2)}"/>`;
}

/** Words of a class. */
export function words(kind: string, x: number, y: number, text: string): string {
  return `<text class="${kind}" x="${place(x)}" y="${place(y)}">${escaped(text)}</text>`;
}

/** A place on the canvas, as it is written. */
export function place(at: number): string {
  return String(Number(at.toFixed(1)));
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}

const STYLE = `<style>
text{font:12px system-ui,sans-serif;fill:#24292f}
.title{font-size:14px;font-weight:600}
.name{text-anchor:end}.name.varve,.name.slower{font-weight:700}
.tick{text-anchor:middle;fill:#57606a}
rect.varve{fill:#0969da}rect.slower{fill:#bc4c00}rect.peer{fill:#8c959f}rect.floor{fill:none;stroke:#8c959f;stroke-dasharray:3 2}
.grid{stroke:#d0d7de}.zero{stroke:#24292f;stroke-width:1.5}.spread{stroke:#24292f;stroke-width:1.5}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.tick{fill:#9198a1}
rect.varve{fill:#4493f8}rect.slower{fill:#f0883e}rect.peer{fill:#656c76}rect.floor{stroke:#9198a1}
.grid{stroke:#30363d}.zero{stroke:#e6edf3}.spread{stroke:#e6edf3}
}
</style>`;
