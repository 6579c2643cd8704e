import { Link, useLocation } from 'wouter';
import { useInbox } from '../data/queries.ts';
import { Logo } from './logo.tsx';
import { SCREENS, type Screen } from './screens.tsx';
import styles from './shell.module.css';

const GROUPS = ['use', 'build', 'operate'] as const;

/** The list of screens. */
export function Rail({ onNavigate }: { readonly onNavigate?: () => void }) {
  const inbox = useInbox();
  const waiting = (inbox.data?.approvals.length ?? 0) + (inbox.data?.questions.length ?? 0);
  return (
    <>
      <div className={styles.brand}>
        <Logo />
        <span className={styles.brandName}>Toolgate</span>
      </div>
      {GROUPS.filter((group) => SCREENS.some((screen) => screen.group === group)).map((group) => (
        <ul key={group} className={styles.group}>
          {SCREENS.filter((screen) => screen.group === group).map((screen) => (
            <li key={screen.path}>
              <Item
                screen={screen}
                count={screen.path === '/inbox' ? waiting : 0}
                {...(onNavigate && { onNavigate })}
              />
            </li>
          ))}
        </ul>
      ))}
    </>
  );
}

interface ItemProps {
  readonly screen: Screen;
  readonly count: number;
  readonly onNavigate?: () => void;
}

function Item({ screen, count, onNavigate }: ItemProps) {
  const [location] = useLocation();
  const isHere = location === screen.path || location.startsWith(`${screen.path}/`);
  return (
    <Link
      href={screen.path}
      className={styles.item}
      title={screen.title}
      aria-current={isHere ? 'page' : undefined}
      {...(onNavigate && { onClick: onNavigate })}
    >
      {screen.icon}
      <span className={styles.label}>{screen.title}</span>
      {count > 0 && (
        <span className={styles.count}>
          {count > 99 ? '99+' : count}
          <span className="visually-hidden"> waiting</span>
        </span>
      )}
    </Link>
  );
}
