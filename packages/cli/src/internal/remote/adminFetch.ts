/**
 * `fetch` for a server that may be any other than the one that the address means: it follows no redirect, reads no answer without end, and says why nothing came.
 */
import * as Data from "effect/Data"
import * as Predicate from "effect/Predicate"

/** Longest answer that is read, in bytes: a thousand times the longest one of a process with hundreds of bindings. */
const mostBytes = 64 * 1_024 * 1_024

/** The server did answer: the same request would be redirected again. */
export class Redirected extends Data.TaggedError("Redirected")<{ readonly message: string }> {}

/** `fetch` would take a request, and whatever is in its body, to wherever a redirect leads. */
export const adminFetch: typeof fetch = async (input, init) => {
  const response = await fetch(input, { ...init, redirect: "manual" })
  const { status, headers, body } = response
  if (status >= 300 && status < 400 && status !== 304) {
    await body?.cancel()
    const message = `it redirects to ${headers.get("location") ?? "nowhere"}, and no credential is sent there`
    throw new Redirected({ message })
  }
  return body === null ? response : new Response(body.pipeThrough(bounded()), response)
}

const bounded = (): TransformStream<Uint8Array, Uint8Array> => {
  let bytes = 0
  return new TransformStream({
    transform: (chunk, controller) => {
      bytes += chunk.length
      if (bytes <= mostBytes) controller.enqueue(chunk)
      else controller.error(new Error(`its answer is longer than ${mostBytes / 1_024 / 1_024} MiB`))
    }
  })
}

/** Codes of Node.js for a certificate that nobody known has signed. */
const untrusted =
  /^(?:UNABLE_TO_(?:GET_ISSUER_CERT|VERIFY_LEAF_SIGNATURE)|SELF_SIGNED_CERT|DEPTH_ZERO_SELF_SIGNED_CERT)/

const longestReason = 300

/** Why a request failed: the innermost cause, which says more than `fetch failed`, on one line. */
export const reasonOf = (error: unknown): string => {
  const { message, code } = innermost(error)
  const hint = untrusted.test(code) ? "; NODE_EXTRA_CA_CERTS=/path/to/ca.pem trusts the authority that signed it" : ""
  const text = message === "" ? code : message
  return `${text.length > longestReason ? `${text.slice(0, longestReason)}…` : text}${hint}`
}

const innermost = (error: unknown): { readonly message: string; readonly code: string } => {
  let found = error
  for (let depth = 0; depth < 10; depth++) {
    const inner = ["reason", "cause"].flatMap((key) =>
      Predicate.hasProperty(found, key) && Predicate.isObject(found[key]) ? [found[key]] : []
    )[0]
    if (inner === undefined) break
    found = inner
  }
  const text = (key: string) => (Predicate.hasProperty(found, key) ? String(found[key]) : "")
  return { message: text("message"), code: text("code") }
}
