import { createRoot } from 'react-dom/client';
import { Chat } from './chat.tsx';
import { loadPast } from './gateway.ts';

const past = await loadPast();
createRoot(document.getElementById('root') as HTMLElement).render(<Chat past={past} />);
