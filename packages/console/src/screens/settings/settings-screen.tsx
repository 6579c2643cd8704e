import { useLocation, useRoute } from 'wouter';
import { useSession } from '../../data/session.tsx';
import { Page } from '../../ui/page.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { Keys } from './keys.tsx';
import { Projects } from './projects.tsx';
import { SessionList } from './session-list.tsx';
import styles from './settings.module.css';

const TABS = [
  { id: 'keys', label: 'Keys' },
  { id: 'sessions', label: 'Sessions' },
  { id: 'projects', label: 'Projects' },
] as const;

/** Settings: `/settings/keys`, `/settings/sessions` and, for operators, `/settings/projects`. */
export default function SettingsScreen() {
  const [, params] = useRoute('/settings/:part');
  const [, navigate] = useLocation();
  const session = useSession().data;
  const tabs = TABS.filter(({ id }) => id !== 'projects' || session?.operator);
  const chosen = tabs.find(({ id }) => id === params?.part)?.id ?? 'keys';
  return (
    <Page title="Settings" layout="filled">
      <Tabs label="Settings" tabs={tabs} chosen={chosen} onChoose={(id) => navigate(`/settings/${id}`)} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard */}
      <section className={styles.body} tabIndex={0} aria-label="Content">
        {chosen === 'projects' ? <Projects /> : chosen === 'sessions' ? <SessionList /> : <Keys />}
      </section>
    </Page>
  );
}
