/** A registry of packages in memory, as npm speaks to it: it answers for what was published, and takes what is. */
import { createHash } from "node:crypto"
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"

export interface Registry {
  readonly url: string
  /** The content of an `.npmrc` that logs npm in. */
  readonly login: string
  /** `name@version` of the uploads, in their order. */
  readonly published: ReadonlyArray<string>
  /** Puts other content under a name and version. */
  readonly occupy: (name: string, version: string) => void
  /** Refuses the next upload of a package. */
  readonly refuseOnce: (name: string) => void
  readonly close: () => void
}

const read = async (request: IncomingMessage): Promise<Buffer> => {
  const parts: Array<Buffer> = []
  for await (const part of request) parts.push(part)
  return Buffer.concat(parts)
}

export const startRegistry = async (): Promise<Registry> => {
  const published: Array<string> = []
  const refused = new Set<string>()
  const documents = new Map<string, Record<string, unknown>>()
  const put = (name: string, version: string, integrity: string): void => {
    const dist = { integrity, tarball: "none", shasum: "" }
    documents.set(name, { name, "dist-tags": { latest: version }, versions: { [version]: { name, version, dist } } })
  }
  const upload = (name: string, body: Buffer): number => {
    if (refused.delete(name)) return 503
    const { versions, _attachments } = JSON.parse(body.toString())
    const [version] = Object.keys(versions)
    const [attachment] = Object.values(_attachments) as Array<{ readonly data: string }>
    const digest = createHash("sha512").update(Buffer.from(attachment!.data, "base64")).digest("base64")
    put(name, version!, `sha512-${digest}`)
    published.push(`${name}@${version}`)
    return 201
  }
  const server = createServer(async (request, response) => {
    const name = decodeURIComponent(request.url!.slice(1).split("?")[0]!)
    const body = await read(request)
    const document = documents.get(name)
    const status = request.method === "PUT" ? upload(name, body) : document === undefined ? 404 : 200
    response.writeHead(status, { "content-type": "application/json" })
    response.end(JSON.stringify(request.method === "GET" && document !== undefined ? document : {}))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}/`
  return {
    url: `http://${address}`,
    login: `//${address}:_authToken=none\nfetch-retries=0\n`,
    published,
    occupy: (name, version) => put(name, version, "sha512-b3RoZXI="),
    refuseOnce: (name) => void refused.add(name),
    close: () => void server.close()
  }
}
