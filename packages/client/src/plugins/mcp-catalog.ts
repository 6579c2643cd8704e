import { DESCRIPTION_LENGTH_MAX, isRecord, safeValidateToolDefinitions } from '../definition-rules.js';
import type { ClientToolDefinition } from '../tool.js';
import { joinedName } from './mcp-name.js';
import { simplified } from './mcp-schema.js';
import type { McpTool } from './mcp-sdk.js';

/** A server's tool, as the model sees it. */
export interface CatalogTool {
  /** The server's own name for it. */
  original: string;
  definition: ClientToolDefinition;
}

/** The tools of a server, as the model sees them. */
export interface Catalog {
  tools: CatalogTool[];
  /** Tools that were simplified or left out, in words. */
  warnings: string[];
}

/** Makes names, descriptions and schemas fit. `only` chooses tools by the server's own names. */
export function catalogOf(server: string, listed: McpTool[], only: readonly string[] | undefined): Catalog {
  const catalog: Catalog = { tools: [], warnings: [] };
  const names = new Set<string>();
  for (const tool of listed) {
    if (only && !only.includes(tool.name)) continue;
    const definition = definitionOf(server, tool);
    const checked = safeValidateToolDefinitions([definition]);
    if (names.has(definition.name)) {
      catalog.warnings.push(`${tool.name} was left out: there are two of that name`);
    } else if (!checked.success) {
      catalog.warnings.push(`${tool.name} was left out: ${checked.errors[0]?.message}`);
    } else {
      names.add(definition.name);
      catalog.tools.push({ original: tool.name, definition });
      if (!sameSchema(tool.inputSchema, definition.parameters))
        catalog.warnings.push(`the schema of ${tool.name} was simplified`);
    }
  }
  return catalog;
}

/** The names of tools that differ between two listings. */
export interface CatalogChange {
  added: string[];
  removed: string[];
  /** With another description or other parameters. */
  changed: string[];
}

export function changeOf(before: CatalogTool[], after: CatalogTool[]): CatalogChange {
  const written = (tools: CatalogTool[]) =>
    new Map(tools.map(({ definition }) => [definition.name, JSON.stringify(definition)]));
  const [old, current] = [written(before), written(after)];
  return {
    added: [...current.keys()].filter((name) => !old.has(name)),
    removed: [...old.keys()].filter((name) => !current.has(name)),
    changed: [...current].filter(([name, text]) => (old.get(name) ?? text) !== text).map(([name]) => name),
  };
}

function definitionOf(server: string, tool: McpTool): ClientToolDefinition {
  const description = tool.description?.trim() || `The tool ${tool.name} of the MCP server ${server}.`;
  return {
    name: joinedName(server, tool.name),
    description: shortened(description),
    parameters: simplified(tool.inputSchema),
  };
}

/** Whether nothing that means something was taken out of a schema. */
function sameSchema(listed: unknown, kept: unknown): boolean {
  const { $schema: _, ...rest } = isRecord(listed) ? listed : {};
  const sorted = (value: unknown): string =>
    JSON.stringify(value, (_key, part: unknown) =>
      isRecord(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
    );
  return sorted({ ...rest, type: 'object' }) === sorted(kept);
}

function shortened(text: string): string {
  const characters = [...text];
  const fits = characters.length <= DESCRIPTION_LENGTH_MAX;
  return fits ? text : `${characters.slice(0, DESCRIPTION_LENGTH_MAX - 1).join('')}…`;
}
