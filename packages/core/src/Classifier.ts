/**
 * What errors mean when no rule of `onError` says so: a function of the user's, or lists of names and patterns as a configuration file has them
 * (connector seed §4.1, §4.6 and §5).
 */
import type { ConfigurationIssue } from "./EventBusError.ts"

/** An error, whatever was thrown, as a classifier sees it. */
export interface ClassifiedError {
  /** Never empty: the `_tag` of a tagged error, else the error's own name, else its class, else its type. */
  readonly className: string
  /** May be empty. */
  readonly message: string
  readonly tag: string | undefined
  /** The chain of `cause`, outermost first; at most ten. */
  readonly causes: ReadonlyArray<{ readonly className: string; readonly message: string }>
  /** The value itself. */
  readonly error: unknown
}

/**
 * Where an error sends its record.
 *
 * - `NEXT_TIER`: attempts in place, then the next tier. `SKIP_TO_TIER`: attempts in place, then tier `targetTier`.
 * - `DEAD_LETTER`: the dead letter topic at once. `PAUSE_CONTAINER`: the record stays, and the binding is paused (ruling 57).
 */
export type ExceptionRouting = "NEXT_TIER" | "SKIP_TO_TIER" | "DEAD_LETTER" | "PAUSE_CONTAINER"

export interface ExceptionRoutingDecision {
  readonly routing: ExceptionRouting
  /** For `SKIP_TO_TIER`, from 1; -1 otherwise. */
  readonly targetTier: number
}

/** Must be quick and without state. undefined: no opinion, the lists decide. One that throws has no opinion either. */
export type ExceptionClassifier = (error: ClassifiedError, currentTier: number) => ExceptionRoutingDecision | undefined

export const nextTier = (): ExceptionRoutingDecision => ({ routing: "NEXT_TIER", targetTier: -1 })

/** Only forward: a tier at or behind the current one means the next; one that does not exist, the dead letter topic (ruling 15). */
export const skipToTier = (tier: number): ExceptionRoutingDecision => ({ routing: "SKIP_TO_TIER", targetTier: tier })

export const deadLetter = (): ExceptionRoutingDecision => ({ routing: "DEAD_LETTER", targetTier: -1 })

export const pauseContainer = (): ExceptionRoutingDecision => ({ routing: "PAUSE_CONTAINER", targetTier: -1 })

/**
 * What an error must look like: a class name or `_tag` (`GatewayDown`; of a qualified name such as `java.net.SocketTimeoutException` the last part
 * counts, too), or a pattern of its message, as a RegExp or as text between slashes (`/timed? out/i`). The chain of causes is looked through,
 * the first 4 KiB of each message.
 */
export type ErrorPattern = string | RegExp

/** Precedence: non-retryable, skip to tier, retryable, and what is in none of them goes to the next tier (ruling 58). */
export interface ExceptionLists {
  /** Errors that are tried again in place. Default: all. When there are some, any other error goes to the next tier at its first attempt. */
  readonly retryable?: ReadonlyArray<ErrorPattern>
  /** Errors that go to the dead letter topic at once. Default: none. */
  readonly nonRetryable?: ReadonlyArray<ErrorPattern>
  /** Errors that go, after the attempts in place, to a tier (from 1) of their own choice. Default: none. */
  readonly skipToTier?: ReadonlyMap<string, number> | Readonly<Record<string, number>>
}

/** Reads a list of patterns. One that is no pattern matches nothing: `problems` names it. */
export const matcher = (patterns: Iterable<ErrorPattern>): ((error: ClassifiedError) => boolean) => {
  const names = new Set<string>()
  const messages: Array<RegExp> = []
  for (const pattern of patterns) {
    if (patternProblems("", pattern).length > 0) continue
    const expression = toExpression(pattern)
    if (expression !== undefined) messages.push(expression)
    else for (const name of spellings(String(pattern))) names.add(name)
  }
  const matches = ({ className, message }: Pick<ClassifiedError, "className" | "message">) =>
    names.has(className) ||
    names.has(simpleName(className)) ||
    messages.some((expression) => expression.test(message.slice(0, longestMessage)))
  return (error) => matches(error) || error.causes.some(matches)
}

/** The entries of a skip mapping. Only its own: names come from outside. */
export const skipEntries = (lists: ExceptionLists): ReadonlyArray<readonly [string, number]> => {
  const mapping = lists.skipToTier ?? {}
  return mapping instanceof Map ? Array.from(mapping) : Object.entries(mapping)
}

/** Everything that is wrong with the lists, at once (connector seed §7). `tiers`: how many the binding has. */
export const problems = (lists: ExceptionLists, tiers: number): ReadonlyArray<ConfigurationIssue> => {
  const { retryable = [], nonRetryable = [] } = lists
  const skips = skipEntries(lists)
  const spelled = new Set(nonRetryable.map(String).flatMap((name) => Array.from(spellings(name))))
  const overlap = retryable.map(String).filter((name) => Array.from(spellings(name)).some((each) => spelled.has(each)))
  return [
    ...retryable.flatMap((pattern, index) => patternProblems(`retryable[${index}]`, pattern)),
    ...nonRetryable.flatMap((pattern, index) => patternProblems(`nonRetryable[${index}]`, pattern)),
    ...skips.flatMap(([pattern]) => patternProblems(`skipToTier[${JSON.stringify(pattern)}]`, pattern)),
    ...overlap.map((name) => ({
      path: "retryable",
      found: `'${name}'`,
      allowed: "errors that are not in nonRetryable"
    })),
    ...skips
      .filter(([, tier]) => !(Number.isInteger(tier) && tier >= 1 && tier <= tiers))
      .map(([pattern, tier]) => ({
        path: `skipToTier[${JSON.stringify(pattern)}]`,
        found: String(tier),
        allowed: tiers === 0 ? "nothing: the binding has no tiers" : `a tier of the binding, 1 to ${tiers}`
      }))
  ]
}

const longestMessage = 4_096

const simpleName = (name: string): string => name.slice(name.lastIndexOf(".") + 1)

const spellings = (name: string): ReadonlySet<string> => new Set([name, simpleName(name)])

/** Without `g` and `y`, which would make a RegExp remember where it was. */
const toExpression = (pattern: ErrorPattern): RegExp | undefined => {
  if (pattern instanceof RegExp) return new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, ""))
  const written = /^\/(.+)\/([a-z]*)$/s.exec(pattern)
  return written === null ? undefined : new RegExp(written[1]!, written[2]!.replace(/[gy]/g, ""))
}

const patternProblems = (path: string, pattern: ErrorPattern): ReadonlyArray<ConfigurationIssue> => {
  if (typeof pattern === "string" && pattern.trim() === "") {
    return [{ path, found: `'${pattern}'`, allowed: "a class name, or a pattern of the message between slashes" }]
  }
  try {
    toExpression(pattern)
    return []
  } catch (error) {
    return [{ path, found: `'${String(pattern)}'`, allowed: `a regular expression: ${String(error)}` }]
  }
}
