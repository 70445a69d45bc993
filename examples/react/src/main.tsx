import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { Todos } from './todos.tsx';

const root = document.getElementById('root');
if (root === null) throw new Error('The page has no root.');
createRoot(root).render(
  <StrictMode>
    <Todos />
  </StrictMode>,
);
