import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Play } from 'lucide-react';
import { useState } from 'react';
import { describeError } from '../../data/describe-error.ts';
import { useClient } from '../../data/gateway.tsx';
import { Button } from '../../ui/button.tsx';
import { DetailBody, DetailHead, Note } from '../../ui/detail.tsx';
import { CodeEditor } from '../../ui/editor/lazy.tsx';
import { Field, Input } from '../../ui/field.tsx';
import { JsonView } from '../../ui/json-view.tsx';
import { draftPackage } from './draft-package.ts';
import styles from './plugins.module.css';

const CODE = `// \`args\` is the input. What is returned is the output.
const { name = 'world' } = args;
return { greeting: \`Hello, \${name}.\` };
`;
const INPUT = '{\n  "name": "Ada"\n}\n';

/** Writes a plugin with one tool and tries it: the package is installed unsigned, which development mode permits. */
export function PluginEditor() {
  const client = useClient();
  const queries = useQueryClient();
  const [id, setId] = useState('draft');
  const [permissions, setPermissions] = useState('');
  const [code, setCode] = useState(CODE);
  const [input, setInput] = useState(INPUT);
  const trying = useMutation({
    mutationFn: async () => {
      const args = JSON.parse(input) as Record<string, unknown>;
      const draft = draftPackage({ id, code, permissions, example: args });
      await client.installedPlugins.install(draft);
      return client.tools.call(draft.tools[0].name, { arguments: args });
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ['plugins'] }),
  });
  const answer = trying.data as { output?: unknown } | undefined;
  return (
    <>
      <DetailHead
        title="Write a plugin"
        back="/plugins"
        about="It is installed unsigned and runs in the sandbox, in this development gateway only"
        actions={
          <Button variant="primary" icon={<Play />} busy={trying.isPending} onClick={() => trying.mutate()}>
            Install and try
          </Button>
        }
      />
      <DetailBody>
        <div className={styles.draft}>
          <Field label="Id" hint="Its tool is called <id>_run.">
            <Input mono value={id} onChange={(event) => setId(event.target.value)} />
          </Field>
          <Field label="Permissions" hint="Separated by commas, such as fetch:api.example.com, storage">
            <Input mono value={permissions} onChange={(event) => setPermissions(event.target.value)} />
          </Field>
        </div>
        <h3>Code</h3>
        <div className={styles.code}>
          <CodeEditor
            label="Code of the tool"
            language="javascript"
            value={code}
            onChange={setCode}
            onSave={() => trying.mutate()}
          />
        </div>
        <h3>Input</h3>
        <div className={styles.input}>
          <CodeEditor
            label="Input of the try"
            language="json"
            value={input}
            onChange={setInput}
            onSave={() => trying.mutate()}
          />
        </div>
        {trying.error && <Note tone="red">{describeError(trying.error).detail}</Note>}
        {answer && (
          <>
            <h3>Output</h3>
            <JsonView value={answer.output ?? answer} open={3} label="Output" />
          </>
        )}
      </DetailBody>
    </>
  );
}
