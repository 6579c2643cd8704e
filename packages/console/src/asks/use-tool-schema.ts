import { useMemo } from 'react';
import { useTools } from '../data/queries.ts';
import { type Schema, schemaOf } from '../ui/schema-form/schema.ts';

/** The schema of a tool's input; one made from an example if the registry does not have the tool. */
export function useToolSchema(agent: string | undefined, toolName: string, example: unknown): Schema {
  const { data: tools } = useTools();
  return useMemo(() => {
    const named = tools?.filter(({ name }) => name === toolName) ?? [];
    const tool = named.find((one) => one.agent === agent) ?? named[0];
    return (tool?.parameters as Schema | undefined) ?? schemaOf(example);
  }, [tools, agent, toolName, example]);
}
