import type { Session } from '@toolgate/client';
import { Menu as MenuIcon, PanelLeft, Search, WifiOff } from 'lucide-react';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { useReach } from '../data/gateway.tsx';
import { IconButton } from '../ui/button.tsx';
import { AccountMenu } from './account-menu.tsx';
import { Palette } from './palette.tsx';
import { Rail } from './rail.tsx';
import styles from './shell.module.css';
import { usePaletteKey } from './use-palette-key.ts';

const RAIL_KEY = 'toolgate.rail';

/** The frame of every screen: rail, top bar, banner. */
export function Shell({ session, children }: { readonly session: Session; readonly children: ReactNode }) {
  const [small, setSmall] = useState(isRailSmall);
  const [drawer, setDrawer] = useState(false);
  const [palette, setPalette] = useState(false);
  usePaletteKey(() => setPalette((open) => !open));
  useEffect(() => keepRail(small), [small]);
  return (
    <div className={styles.shell} data-rail={small ? 'small' : 'wide'}>
      <a className={styles.skip} href="#screen">
        Skip to the content
      </a>
      <nav className={styles.rail} aria-label="Screens">
        <Rail />
        <span className={styles.grow} />
        <IconButton
          label={small ? 'Widen the navigation' : 'Narrow the navigation'}
          icon={<PanelLeft />}
          onClick={() => setSmall(!small)}
        />
      </nav>
      <div className={styles.top}>
        <IconButton
          className={styles.burger}
          label="Open the navigation"
          icon={<MenuIcon />}
          onClick={() => setDrawer(true)}
        />
        <span className={styles.project}>
          Project <b>{session.project.name}</b>
        </span>
        <SearchButton onClick={() => setPalette(true)} />
        <Reach />
        <AccountMenu session={session} />
      </div>
      <main className={styles.main}>
        <Banner />
        <div id="screen" className={styles.screen}>
          {children}
        </div>
      </main>
      {drawer && <Drawer onClose={() => setDrawer(false)} />}
      {palette && <Palette onClose={() => setPalette(false)} />}
    </div>
  );
}

function SearchButton({ onClick }: { readonly onClick: () => void }) {
  const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent);
  return (
    <button type="button" className={styles.search} onClick={onClick}>
      <Search aria-hidden="true" />
      <span>Search or jump to…</span>
      <kbd>{isMac ? '⌘ K' : 'Ctrl K'}</kbd>
    </button>
  );
}

function Reach() {
  const reach = useReach();
  return (
    <span className={styles.reach} data-reach={reach} title={reach === 'live' ? 'Connected' : 'Reconnecting'}>
      <span className={styles.dot} />
      <span className={styles.reachWord}>{reach === 'live' ? 'Live' : 'Reconnecting…'}</span>
    </span>
  );
}

/** Says that the gateway is away, until it is back. Nothing that is shown is lost meanwhile. */
function Banner() {
  const reach = useReach();
  return (
    <div role="status" aria-live="polite">
      {reach === 'cut' && (
        <p className={styles.banner}>
          <WifiOff aria-hidden="true" />
          The gateway cannot be reached. Runs are stored; this page goes on as soon as it is back.
        </p>
      )}
    </div>
  );
}

function Drawer({ onClose }: { readonly onClose: () => void }) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it, a click on the backdrop does too
    <dialog
      ref={ref}
      className={styles.drawer}
      aria-label="Navigation"
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === ref.current && onClose()}
    >
      <Rail onNavigate={onClose} />
    </dialog>
  );
}

function isRailSmall(): boolean {
  try {
    return localStorage.getItem(RAIL_KEY) === 'small';
  } catch {
    return false;
  }
}

function keepRail(small: boolean): void {
  try {
    localStorage.setItem(RAIL_KEY, small ? 'small' : 'wide');
  } catch {
    // Storage may be blocked; then the width lasts as long as the page.
  }
}
