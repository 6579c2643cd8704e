import type { wire } from '@toolgate/client';
import { ShieldAlert, ShieldCheck, ShieldQuestionMark, ShieldX } from 'lucide-react';
import type { ReactNode } from 'react';
import { Badge, type Tone } from '../../ui/badge.tsx';

const LOOKS: Readonly<
  Record<wire.VerificationState, { word: string; about: string; tone: Tone; icon: ReactNode }>
> = {
  verified: { word: 'Verified', about: 'All of it is signed', tone: 'green', icon: <ShieldCheck /> },
  'tools-only': {
    word: 'Tools signed',
    about: 'Permissions, version and id are not signed',
    tone: 'amber',
    icon: <ShieldAlert />,
  },
  unsigned: { word: 'Unsigned', about: 'Nobody vouches for it', tone: 'amber', icon: <ShieldQuestionMark /> },
  rejected: { word: 'Rejected', about: 'Its signature does not hold', tone: 'red', icon: <ShieldX /> },
};

/** Who vouches for a package, and for how much of it. */
export function TrustBadge({ verification }: { readonly verification: wire.PluginVerification }) {
  const { word, about, tone, icon } = LOOKS[verification.state];
  return (
    <Badge tone={tone} icon={icon} title={verification.reason ?? about}>
      {verification.state === 'verified' && verification.curator
        ? `Verified by ${verification.curator}`
        : word}
    </Badge>
  );
}
