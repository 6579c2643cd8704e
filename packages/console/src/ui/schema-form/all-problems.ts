import { createContext } from 'react';

/** Whether a form tells all its problems, also those of fields that nobody has been to yet. */
export const AllProblems = createContext(false);
