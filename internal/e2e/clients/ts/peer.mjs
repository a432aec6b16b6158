// Asks another MCP server, which makes tools of an OpenAPI document, what
// hb-rest is asked too, and prints what came as {"tools": [...], "text": "..."}:
//
//	node peer.mjs API-URL OPENAPI-FILE
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'

const [api, file] = process.argv.slice(2)
const program = fileURLToPath(new URL('node_modules/@ivotoby/openapi-mcp-server/bin/mcp-server.js', import.meta.url))
const client = new Client({ name: 'e2e', version: '1' }, { capabilities: {} })
await client.connect(new StdioClientTransport({ command: process.execPath, args: [program], env: { ...process.env, API_BASE_URL: api, OPENAPI_SPEC_PATH: file, VERBOSE: 'false' } }))
const { tools } = await client.listTools()
const name = tools.find((t) => /\/products\b|product/i.test(JSON.stringify(t))).name
const result = await client.callTool({ name, arguments: { limit: 10 } })
console.log(JSON.stringify({ tools, text: result.content.map((c) => c.text).join('') }))
await client.close()
