/** The default theme in the colours of the demo, without its fonts, which are 100 KB, and with the playground. */

import type { Theme } from 'vitepress';
import DefaultTheme from 'vitepress/theme-without-fonts';
import { Playground } from './playground.ts';
import './style.css';

export default {
  extends: DefaultTheme,
  enhanceApp: ({ app }) => void app.component('Playground', Playground),
} satisfies Theme;
