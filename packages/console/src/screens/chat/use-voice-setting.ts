import { useState } from 'react';

const KEY = 'toolgate.voice';

/** Whether this browser speaks and listens in the chat; off until somebody turns it on. */
export function useVoiceSetting(): [boolean, (on: boolean) => void] {
  const [isOn, setOn] = useState(read);
  const choose = (on: boolean): void => {
    setOn(on);
    try {
      if (on) localStorage.setItem(KEY, 'on');
      else localStorage.removeItem(KEY);
    } catch {
      // Storage may be blocked; then the choice lasts as long as the page.
    }
  };
  return [isOn, choose];
}

function read(): boolean {
  try {
    return localStorage.getItem(KEY) === 'on';
  } catch {
    return false;
  }
}
