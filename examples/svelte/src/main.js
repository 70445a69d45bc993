import { mount } from 'svelte';
import Pixels from './Pixels.svelte';

mount(Pixels, { target: document.getElementById('root') });
