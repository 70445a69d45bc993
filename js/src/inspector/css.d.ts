// Styles are imported as texts: the build makes a module of each file.

declare module '*.css' {
  export const css: string;
}
