/**
 * Checks the options of a binding in code, before anything reads them: every option has its kind (ruling 38). The types say the same, but a program in JavaScript, a cast or a
 * value from outside gets past them.
 *
 * A refused option is replaced, so that describing the binding never throws. Registering it then reports all problems at once, and starts nothing.
 */
import * as Effect from "effect/Effect"
import * as Choices from "../../Choices.ts"
import * as Defaults from "../../Defaults.ts"
import type { ConfigurationIssue } from "../../EventBusError.ts"
import * as Kinds from "../../Kinds.ts"
import * as Ranges from "../../Ranges.ts"
import type { RetryPolicy } from "../../RetryPolicy.ts"
import type { NamingStrategy } from "../../TopicName.ts"
import * as Properties from "../base/properties.ts"
import { isObject, read } from "../base/properties.ts"
import { shown } from "../base/shown.ts"
import * as BreakerSettings from "../breaker/settings.ts"
import * as Failure from "../failure/failure.ts"
import * as RouteChecks from "../failure/routeChecks.ts"
import * as AssignmentStrategy from "../port/assignmentStrategy.ts"
import * as PolicyKinds from "../retry/policyKinds.ts"
import * as DeadLetterKinds from "./deadLetterKinds.ts"
import * as Ids from "./ids.ts"
import * as PerKey from "./perKey.ts"
import * as RenamedSettings from "./renamedSettings.ts"
import * as Topics from "./topics.ts"

/** The name and the options of a binding, as far as they can be used. */
export interface GivenOptions<O> {
  readonly name: string
  /** A copy of what was given, in which refused options have a value that can be read. */
  readonly options: O
  readonly refused: ReadonlyArray<ConfigurationIssue>
}

type HandlerName = "handler" | "handleBatch"

const choices = Object.fromEntries(Object.entries(Choices.binding).map(([name, texts]) => [name, Kinds.oneOf(texts)]))

const naming = Kinds.struct({}, { name: Kinds.string, retry: Kinds.func, deadLetter: Kinds.func })

/** Functions by name. The names stand in a header. */
const transforms: Kinds.Kind = (path, found) => [
  ...Kinds.recordOf(Kinds.func, "an object of functions by name")(path, found),
  ...(isObject(found) ? (Properties.namesOf(found) ?? []) : [])
    .filter((name) => name.length > longestTransform || Kinds.nameProblem(name) !== undefined)
    .map((name) => ({
      path,
      found: `the name ${shown(name)}`,
      allowed: `names of 1 to ${longestTransform} characters`
    }))
]

const longestTransform = 128

const optional = {
  ...choices,
  ...Ranges.binding,
  cluster: Kinds.string,
  key: Kinds.serde,
  value: Kinds.serde,
  staticMembership: Kinds.flag,
  logKeys: Kinds.flag,
  autoStartup: Kinds.flag,
  partitionAssignmentStrategy: Kinds.make(
    `a list of one or more different protocols out of ${AssignmentStrategy.names.join(", ")}`,
    (listed) =>
      Array.isArray(listed) &&
      listed.length > 0 &&
      new Set(listed).size === listed.length &&
      listed.every((name) => AssignmentStrategy.names.includes(name))
  ),
  retry: PolicyKinds.complete,
  perKey: PerKey.kind,
  classifier: Kinds.func,
  interceptors: Kinds.listOf(Kinds.func, "a list of functions"),
  enrich: Kinds.func,
  adopts: Kinds.listOf(Kinds.string, "a list of group ids"),
  transforms,
  naming,
  deadLetter: DeadLetterKinds.complete,
  circuitBreaker: BreakerSettings.kind,
  idempotency: Kinds.struct({ key: Kinds.func, scope: Kinds.name, ...Ranges.idempotency })
} as const

const required = {
  topic: Topics.kind,
  groupId: Ids.ofBinding
} as const

/** The options of a binding, checked. Reads each of them once, and never throws. */
export const check = <O extends object>(name: unknown, given: O, handler: HandlerName): GivenOptions<O> => {
  const named = typeof name === "string" ? name : ""
  const options = isObject(given) ? taken(given, handler) : given
  const renamed = RenamedSettings.issues(given, RenamedSettings.ofBinding)
  const refused = [...Kinds.name("name", name), ...renamed, ...problemsOf(options, handler)]
  return refused.length === 0
    ? { name: named, options, refused }
    : { name: named, options: usable(options, refused, handler) as O, refused }
}

const namesTaken = [...Object.keys(optional), ...Object.keys(required), "onError"]

/** A copy, for which each option was read once. The functions of an instance still see their instance. */
const taken = <O extends object>(given: O, handler: HandlerName): O => {
  const copy = Properties.takenWhole(given, [...namesTaken, handler])
  if (Properties.isPlain(given)) return copy
  return Object.fromEntries(
    Object.entries(copy).map(([name, value]) => [name, typeof value === "function" ? value.bind(given) : value])
  ) as O
}

/** The option that a problem is about: `retry` for `retry.blocking.maxAttempts`. */
export const optionOf = (path: string): string => /^[^.[]*/.exec(path)?.[0] ?? path

const problemsOf = (options: unknown, handler: HandlerName): ReadonlyArray<ConfigurationIssue> => {
  if (!isObject(options)) return Ranges.problemsOfAll(options, {})
  const issues = [
    ...Kinds.problemsOfRequired(options, { ...required, [handler]: Kinds.func }),
    ...Ranges.problemsOfAll(options, optional)
  ]
  const fails = (option: string) => issues.some(({ path }) => optionOf(path) === option)
  const retry = fails("retry") ? undefined : (read(options, "retry") as RetryPolicy | undefined)
  const onError = read(options, "onError")
  return [
    ...issues,
    ...(fails("orderingMode") || fails("perKey") ? [] : PerKey.withoutEffect(options)),
    ...(fails("naming") || fails("topic") || fails("groupId") ? [] : namesOf(options, retry)),
    ...(onError === undefined || fails("retry") ? [] : RouteChecks.problems(onError, tiersOf(options, retry)))
  ]
}

/** How many retry tiers the binding has. */
const tiersOf = (options: object, retry: RetryPolicy | undefined): number => {
  if (retry !== undefined) return retry.tiers.length
  const given = read(options, "orderingMode")
  const mode = Choices.binding.orderingMode.find((each) => each === given) ?? Defaults.binding.orderingMode
  return Defaults.retry.tierDelaysMillis[mode].length
}

/** The functions of a naming strategy are the user's: each gives a text, and throws nothing. */
const namesOf = (options: object, retry: RetryPolicy | undefined): ReadonlyArray<ConfigurationIssue> => {
  const strategy = read(options, "naming") as NamingStrategy | undefined
  if (strategy === undefined) return []
  const groupId = read(options, "groupId") as string
  const topics = Topics.listOf(read(options, "topic") as Topics.Given)
  const tiers = Array.from({ length: tiersOf(options, retry) }, (_, index) => index + 1)
  const named = tiers.filter((tier) => retry?.tiers[tier - 1]?.topicSuffix === undefined)
  return topics
    .flatMap((topic) => [
      ...named.flatMap((tier) => nameOf("naming.retry", () => strategy.retry({ topic, groupId }, tier))),
      ...nameOf("naming.deadLetter", () => strategy.deadLetter({ topic, groupId }))
    ])
    .slice(0, 1)
}

const nameOf = (path: string, name: () => unknown): ReadonlyArray<ConfigurationIssue> => {
  const allowed = "a function that gives a topic name"
  try {
    const answer = name()
    return typeof answer === "string" ? [] : [{ path, found: `one that gives ${shown(answer)}`, allowed }]
  } catch (error) {
    return [{ path, found: `one that throws ${Failure.fromUnknown(error).className}`, allowed }]
  }
}

/** The options without those that are refused. The required ones, and numbers that rules compare, have a value that no rule objects to. */
const usable = (options: unknown, refused: ReadonlyArray<ConfigurationIssue>, handler: HandlerName): object => {
  const names = new Set(refused.map(({ path }) => optionOf(path)))
  const given = isObject(options)
    ? [...namesTaken, handler].flatMap((name) => {
        const found = names.has(name) ? undefined : read(options, name)
        return found === undefined ? [] : [[name, found] as const]
      })
    : []
  const noNumbers = Object.keys(Ranges.binding).flatMap((name) =>
    names.has(name) ? [[name, Number.NaN] as const] : []
  )
  const never = () => Effect.die("This binding is refused.")
  return { topic: "", groupId: "", [handler]: never, ...Object.fromEntries([...noNumbers, ...given]) }
}
