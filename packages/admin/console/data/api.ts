/** Requests to the admin API, relative to the address of the page. */
import { once } from "./once.ts"

/** A request that was refused, or that got no answer (status 0). */
export class Refusal extends Error {
  readonly status: number
  readonly tag: string

  constructor(status: number, tag: string, message: string) {
    super(message)
    this.status = status
    this.tag = tag
  }
}

const tokenKey = "eventbus-token"

/** The token lives as long as the tab. */
export const token = {
  read: (): string => sessionStorage.getItem(tokenKey) ?? "",
  write: (value: string): void => {
    if (value === "") sessionStorage.removeItem(tokenKey)
    else sessionStorage.setItem(tokenKey, value)
  }
}

/** Takes the token out of an address such as `console#token=…`, which servers never see, and leaves none of it in the history. */
export const takeToken = (): void => {
  const [, given] = /^#token=(.+)$/.exec(location.hash) ?? []
  if (given === undefined) return
  token.write(decodeURIComponent(given))
  history.replaceState(null, "", "#/")
}

/** The address of a route, of the API that serves this page. */
const addressOf = (path: string): URL => new URL(path, new URL(".", location.href))

/** A part of a path. */
export const part = encodeURIComponent

/** The path of a request about the dead letters of one of several topics. */
export const ofTopic = (path: string, topic: string | undefined): string =>
  topic === undefined ? path : `${path}${path.includes("?") ? "&" : "?"}topic=${part(topic)}`

const headersOf = (more: Readonly<Record<string, string>>): Record<string, string> => {
  const bearer = token.read()
  // The audit log tells the console from other callers.
  const headers = { "x-eventbus-client": "console", ...more }
  return bearer === "" ? headers : { authorization: `Bearer ${bearer}`, ...headers }
}

/** Opens a response, whatever its status. */
export const open = async (path: string, headers: Readonly<Record<string, string>>, signal: AbortSignal) =>
  fetch(addressOf(path), { headers: headersOf(headers), signal, cache: "no-store" })

const answerOf = async <A>(answered: Promise<Response>): Promise<A> => {
  const response = await answered.catch(() => {
    throw new Refusal(0, "NoAnswer", "The process does not answer.")
  })
  const body: unknown = await response.json().catch(() => ({}))
  if (response.ok) return body as A
  throw refusalOf(response.status, body)
}

/** The reason of a refusal, in the words of the API. */
export const refusalOf = (status: number, body: unknown): Refusal => {
  const { _tag = "Refused", message = `The answer has status ${status}.` } = body as {
    readonly _tag?: string
    readonly message?: string
  }
  return new Refusal(status, String(_tag), String(message))
}

export const get = <A>(path: string): Promise<A> =>
  answerOf<A>(fetch(addressOf(path), { headers: headersOf({}), cache: "no-store" }))

/** A change. The header keeps pages of other sites from sending it with this browser's session. */
export const post = <A>(path: string, body?: unknown): Promise<A> =>
  answerOf<A>(
    once((key) =>
      fetch(addressOf(path), {
        method: "POST",
        headers: headersOf({
          ...{ "x-eventbus-csrf": "1", "idempotency-key": key },
          ...(body === undefined ? {} : { "content-type": "application/json" })
        }),
        ...(body === undefined ? {} : { body: JSON.stringify(body) })
      })
    )
  )
