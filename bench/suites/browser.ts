/** Loads the suites that need a page as well. */

import './all.ts';
import './documents/suite.ts';
import './tabs/cached.ts';
import './tabs/suite.ts';
