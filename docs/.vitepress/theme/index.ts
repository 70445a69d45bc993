/** The default theme in the colours of the demo, without its fonts, which are 100 KB. */

import type { Theme } from 'vitepress';
import DefaultTheme from 'vitepress/theme-without-fonts';
import './style.css';

export default { extends: DefaultTheme } satisfies Theme;
