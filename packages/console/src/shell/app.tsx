import { Compass } from 'lucide-react';
import { Component, type ReactNode, Suspense } from 'react';
import { Redirect, Route, Switch, useLocation } from 'wouter';
import { isSignedOut } from '../data/describe-error.ts';
import { LiveRuns } from '../data/live-runs.tsx';
import { LoginLinkError, useSession } from '../data/session.tsx';
import { LinkButton } from '../ui/button.tsx';
import { Empty, ErrorState, Loading } from '../ui/states.tsx';
import { Toasts } from '../ui/toast.tsx';
import { SCREENS } from './screens.tsx';
import { Shell } from './shell.tsx';
import { SignIn } from './sign-in.tsx';

/** The console: the sign-in page for whoever has no session, and the screens for the others. */
export function App() {
  const session = useSession();
  return (
    <>
      <Content session={session} />
      <Toasts />
    </>
  );
}

function Content({ session }: { readonly session: ReturnType<typeof useSession> }) {
  if (session.isPending) return <Loading label="Opening the console" />;
  if (session.isError && (isSignedOut(session.error) || session.error instanceof LoginLinkError))
    return <SignIn error={session.error} />;
  // A gateway that is away for a moment takes nothing off the screen.
  if (!session.data) return <ErrorState error={session.error} retry={() => void session.refetch()} />;
  return (
    <Shell key={session.data.id} session={session.data}>
      <LiveRuns />
      <Screens />
    </Shell>
  );
}

function Screens() {
  return (
    <Switch>
      <Route path="/">
        <Redirect to="/chat" replace />
      </Route>
      <Route path="/login">
        <Redirect to="/chat" replace />
      </Route>
      {SCREENS.map(({ path, view: View }) => (
        <Route key={path} path={`${path}/*?`}>
          <Boundary>
            <Suspense fallback={<Loading />}>
              <View />
            </Suspense>
          </Boundary>
        </Route>
      ))}
      <Route>
        <Empty
          icon={<Compass />}
          title="There is no such page"
          actions={<LinkButton href="/chat">Open the chat</LinkButton>}
        >
          The address may be mistyped, or from another version of the console.
        </Empty>
      </Route>
    </Switch>
  );
}

function Boundary({ children }: { readonly children: ReactNode }) {
  const [location] = useLocation();
  return <ErrorBoundary place={location}>{children}</ErrorBoundary>;
}

interface ErrorBoundaryProps {
  readonly place: string;
  readonly children: ReactNode;
}

/** Keeps an error of one screen from taking the rail with it. Another place is a new try. */
class ErrorBoundary extends Component<ErrorBoundaryProps, { error: unknown }> {
  override state = { error: undefined as unknown };

  static getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error };
  }

  override componentDidUpdate(before: ErrorBoundaryProps): void {
    if (before.place !== this.props.place && this.state.error !== undefined)
      this.setState({ error: undefined });
  }

  override render(): ReactNode {
    return this.state.error === undefined ? (
      this.props.children
    ) : (
      <ErrorState error={this.state.error} retry={() => this.setState({ error: undefined })} />
    );
  }
}
