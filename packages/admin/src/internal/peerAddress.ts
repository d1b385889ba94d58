/**
 * Tells whether a caller is on this machine. Nobody from elsewhere can claim to be: the address is the socket's, and a request that came through a proxy, or names another
 * host, counts as one from elsewhere.
 */
import { Context, Option } from "effect"
import type { HttpServerRequest } from "effect/http"

/** The address of the caller, where the request itself does not carry it. Default: the request's own. */
export const PeerAddress = Context.Reference<string | undefined>("@eventbus/admin/PeerAddress", {
  defaultValue: () => undefined
})

const forwarded = ["forwarded", "x-forwarded-for", "x-real-ip", "via"]

const isLoopbackAddress = (address: string): boolean => /^(?:::ffff:)?127\.\d+\.\d+\.\d+$|^::1$/i.test(address)

/** A page of another site whose name leads to 127.0.0.1 sends its own name as host. */
const isLoopbackHost = (host: string): boolean => /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?$/i.test(host)

export const isLocal = (
  { headers, remoteAddress }: HttpServerRequest.HttpServerRequest,
  peer: string | undefined
): boolean => {
  const address = peer ?? Option.getOrUndefined(remoteAddress)
  return (
    address !== undefined &&
    isLoopbackAddress(address) &&
    forwarded.every((header) => headers[header] === undefined) &&
    isLoopbackHost(headers["host"] ?? "")
  )
}
