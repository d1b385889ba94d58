/**
 * Tells where a request comes from: whether its caller is on this machine, and whether a page of another site may have sent it.
 *
 * The address is the socket's. A request that a proxy has marked, that names another host, or that a page of another site sends,
 * counts as one from elsewhere. A proxy on this machine that marks nothing cannot be told from a caller on this machine.
 */
import * as Context from "effect/Context"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Option from "effect/Option"

/** The address of the caller, where the request itself does not carry it. Default: the request's own. */
export const PeerAddress = Context.Reference<string | undefined>("@eventbus/admin/PeerAddress", {
  defaultValue: () => undefined
})

/** Headers by which proxies say whom they speak for, or that they are there: RFC 7239 and 9110, and those of common proxies and clouds. */
const ofProxies =
  /^(?:forwarded|via|x-forwarded(?:-.+)?|x-real-ip|x-client-ip|x-cluster-client-ip|x-envoy-.+|x-original-.+|x-amzn-trace-id|true-client-ip|fastly-client-ip|cf-.+|x-azure-.+|x-appengine-.+)$/

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
    !Object.keys(headers).some((name) => ofProxies.test(name)) &&
    headers["sec-fetch-site"] !== "cross-site" &&
    isLoopbackHost(headers["host"] ?? "")
  )
}

/** A page of another site can neither set the header nor keep the browser from saying where it comes from. Older browsers send `Origin` alone. */
export const isOfOwnPage = ({ headers }: HttpServerRequest.HttpServerRequest): boolean => {
  const { "x-eventbus-csrf": mark, "sec-fetch-site": site, origin, host } = headers
  if (mark === undefined) return false
  if (site !== undefined) return site === "same-origin"
  return origin === undefined || origin.replace(/^https?:\/\//, "") === host
}
