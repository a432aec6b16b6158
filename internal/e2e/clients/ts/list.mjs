// Prints the names of the tools that a client of the TypeScript SDK sees:
//
//	node list.mjs HB-REST TOKEN-FILE BRIDGE-URL KIND
//
// It compiles each input schema as hosts do that check arguments themselves.
import Ajv from 'ajv'
import addFormats from 'ajv-formats'
import { connect } from './e2e-connect.mjs'

const [program, tokenFile, bridge, kind] = process.argv.slice(2)
const client = await connect(kind, { program, tokenFile, bridge, more: { HB_WRAP_MAX_TOOLS: '200' } })
const { tools, nextCursor } = await client.listTools()
if (nextCursor) throw new Error('there is a second page')
const ajv = addFormats(new Ajv({ strict: true, allErrors: true }))
for (const tool of tools) {
  ajv.compile(tool.inputSchema)
  console.log(tool.name)
}
await client.close()
