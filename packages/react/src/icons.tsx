import type { ReactNode } from 'react';

export function SendIcon(): ReactNode {
  return <Icon path="M12 19V6M6 11.5 12 5.5l6 6" />;
}

export function StopIcon(): ReactNode {
  return <Icon path="M8 8h8v8H8z" fill="currentColor" />;
}

export function CheckIcon(): ReactNode {
  return <Icon path="m5.5 12.5 4.5 4.5 9-10" />;
}

export function CrossIcon(): ReactNode {
  return <Icon path="m7 7 10 10M17 7 7 17" />;
}

export function ToolIcon(): ReactNode {
  return (
    <Icon path="M14.5 6.5a4 4 0 0 0-5.3 5.1L4.5 16.3a2.2 2.2 0 0 0 3.2 3.2l4.7-4.7a4 4 0 0 0 5.1-5.3l-2.4 2.4-2.8-.2-.2-2.8z" />
  );
}

export function QuestionIcon(): ReactNode {
  return <Icon path="M12 3.5 19.5 6v5.5c0 4.6-3.1 7.6-7.5 9-4.4-1.4-7.5-4.4-7.5-9V6zM12 8.5v4M12 15.5v.1" />;
}

function Icon({ path, fill = 'none' }: { path: string; fill?: string }) {
  return (
    <svg viewBox="0 0 24 24" width="1em" height="1em" aria-hidden="true" focusable="false">
      <path
        d={path}
        fill={fill}
        stroke="currentColor"
        strokeWidth="2"
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </svg>
  );
}
