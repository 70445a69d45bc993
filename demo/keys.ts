// The page "All keys": the inspector, over the stores of the demo. `scratch` is there for the visitor's imports.

import 'varve/inspector';
import { open } from 'varve';

const scratch = await open('scratch');
await scratch.close();
