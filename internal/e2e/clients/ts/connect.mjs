// Connects to a real hb-rest with one of the TypeScript SDK's clients:
//
//	v1		the package sdk, which most hosts are built on; handshake of 2025-11-25
//	v2-legacy	the package client, the same handshake, which is its default
//	v2-modern	the package client, protocol 2026-07-28 and no other
const modern = '2026-07-28'

export async function connect(kind, { program, tokenFile, bridge, more = {}, changed = () => {} }) {
  const v1 = kind === 'v1'
  const { Client } = await import(v1 ? '@modelcontextprotocol/sdk/client/index.js' : '@modelcontextprotocol/client')
  const { StdioClientTransport } = await import(v1 ? '@modelcontextprotocol/sdk/client/stdio.js' : '@modelcontextprotocol/client/stdio')
  const client = new Client({ name: 'e2e', version: '1' }, {
    capabilities: {},
    listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: changed } },
    ...(kind === 'v2-modern' ? { versionNegotiation: { mode: { pin: modern } } } : {}),
  })
  // Only these and what the SDK passes on by itself: HOME, PATH and few more.
  await client.connect(new StdioClientTransport({ command: program, env: { HB_WRAP_TOKEN_FILE: tokenFile, HB_WRAP_URL: bridge, HOME: process.env.HOME, ...more } }))
  if (!v1 && client.getProtocolEra() !== kind.slice('v2-'.length)) throw new Error(`connected in the era ${client.getProtocolEra()}`)
  return client
}
