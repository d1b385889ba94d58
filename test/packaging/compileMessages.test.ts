/** The compiler's text for typical mistakes. One run of the workspace's TypeScript compiles all of them, each as a file of its own. */
import { execFile } from "node:child_process"
import { mkdir, rm, symlink, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

const root = fileURLToPath(new URL("../..", import.meta.url))
const folder = join(root, `node_modules/.cache/compile-messages-${process.pid}`)

const shop = `
import { Serde } from "@eventbus/core"
import { Context, type Effect, Schema } from "effect"

export class Order extends Schema.Class<Order>("Order")({ id: Schema.String, cents: Schema.Int }) {}
export class GatewayDown extends Schema.TaggedError<GatewayDown>()("GatewayDown", {}) {}
export class CardDeclined extends Schema.TaggedError<CardDeclined>()("CardDeclined", { code: Schema.String }) {}
export class Billing extends Context.Service<Billing, { readonly charge: (order: Order) => Effect.Effect<void> }>()("Billing") {}
export declare const charge: (order: Order) => Effect.Effect<void, GatewayDown | CardDeclined>
export const value = Serde.json(Order)
export const orders = { topic: "orders", groupId: "billing", value } as const
`

const head = `
import { Binding, Program, Route } from "@eventbus/core"
import { Effect, type Layer } from "effect"
import { Billing, CardDeclined, charge, type Order, orders, value } from "./shop.ts"
`

const logged = "handler: ({ value }) => Effect.log(value.id)"
const charged = "handler: ({ value }) => charge(value)"

const mistakes = {
  misspelledGroup: `Binding.make("orders", { topic: "orders", groupID: "billing", value, ${logged} })`,
  misspelledGroupOfBatches: `Binding.makeBatch("orders", { topic: "orders", groupID: "billing", value, handleBatch: () => Effect.void })`,
  missingGroup: `Binding.make("orders", { topic: "orders", value, ${logged} })`,
  missingGroupOfTransactions: `Binding.makeTransactional("orders", { topic: "orders", value, ${logged} })`,
  asyncHandler: `Binding.make("orders", { ...orders, handler: async ({ value }) => console.log(value.id) })`,
  asyncBatchHandler: `Binding.makeBatch("orders", { ...orders, handleBatch: async ({ topic }) => { console.log(topic) } })`,
  missingTag: `Binding.make("orders", { ...orders, ${charged}, onError: { GatewayDown: Route.retry } })`,
  missingRules: `Binding.make("orders", { ...orders, ${charged} })`,
  unknownUnit: `Binding.make("orders", { ...orders, maxPollInterval: "5 moons", ${logged} })`,
  missingLayer: `declare const main: Layer.Layer<never, never, Billing>
Program.launch(main)`,
  calledRoute: `Binding.make("orders", { ...orders, ${charged}, onError: { CardDeclined: Route.skip, GatewayDown: Route.retry() } })`,
  uncalledRoute: `Binding.make("orders", { ...orders, ${charged}, onError: { CardDeclined: Route.deadLetter, GatewayDown: Route.skip } })`,
  effectFn: `Binding.make("orders", {
  ...orders,
  handler: Effect.fn("charge")(function* ({ value }) { yield* charge(value) }),
  onError: { CardDeclined: ({ code }) => Route.deadLetter(code), GatewayDown: Route.skip }
})`
}

const programs = {
  durations: `Binding.make("orders", { ...orders, maxPollInterval: "5m", sessionTimeout: "1m 30s", heartbeatInterval: "250ms", ${logged} })`,
  // TypeScript infers the error from one of two effects: the type of what a handler returns keeps it.
  oneOfTwoEffects: `Binding.make("orders", {
  ...orders,
  handler: ({ value }) => (value.cents > 3 ? new CardDeclined({ code: "limit" }) : Effect.void),
  onError: { CardDeclined: ({ code }) => Route.deadLetter(code) }
})`,
  effectFn: `const handle = Effect.fn("charge")(function* (order: Order) { yield* charge(order) })
Binding.make("orders", {
  ...orders,
  handler: ({ value }) => handle(value),
  onError: { CardDeclined: ({ code }) => Route.deadLetter(code), GatewayDown: Route.skip }
})`,
  wrappedAsync: `Binding.make("orders", { ...orders, handler: ({ value }) => Effect.promise(async () => console.log(value.id)) })`,
  completeLayer: `declare const main: Layer.Layer<Billing>
export const program: Effect.Effect<never> = Program.launch(main)`
}

const nodeHead = `
import { consumer, deadLetter, defineTopic, on, Serde, standardSchema } from "@eventbus/node"
import { z } from "zod"

const Order = z.object({ id: z.string(), cents: z.int() })
export class CardDeclined extends Error {}
const value = standardSchema(Order)
const orders = { topic: "orders", groupId: "billing", value } as const
`

const awaited = "handler: async ({ value }) => console.log(value.id)"

/** Mistakes of people who do not write Effect. */
const nodeMistakes = {
  nodeMisspelledGroup: `consumer({ topic: "orders", groupID: "billing", value, ${awaited} })`,
  nodeMissingGroup: `consumer({ topic: "orders", value, ${awaited} })`,
  nodeUnitInName: `consumer({ ...orders, sessionTimeoutMs: 30_000, ${awaited} })`,
  nodeUncalledRoute: `consumer({ ...orders, ${awaited}, onError: [on(CardDeclined, deadLetter)] })`,
  nodeBareSchema: `consumer({ topic: "orders", groupId: "billing", value: Order, ${awaited} })`,
  nodeBareSchemaOfTopic: `defineTopic("orders", { key: Serde.string, value: Order })`,
  nodeIndexedHeaders: `consumer({ ...orders, handler: async ({ headers }) => console.log(headers["tenant"]) })`,
  nodeRulesByTag: `consumer({ ...orders, ${awaited}, onError: { CardDeclined: deadLetter() } })`
}

const nodePrograms = {
  nodeRules: `consumer({ ...orders, ${awaited}, onError: [on(CardDeclined, ({ message }) => deadLetter(message))] })`
}

const messages = new Map<string, ReadonlyArray<string>>()

/** The lines of the first message about a mistake, without its place. */
const messageOf = (name: keyof typeof mistakes | keyof typeof nodeMistakes): ReadonlyArray<string> =>
  messages.get(name) ?? []

const link = async (name: string, target: string) => {
  const path = join(folder, "node_modules", name)
  await mkdir(dirname(path), { recursive: true })
  await symlink(join(root, target), path)
}

beforeAll(async () => {
  await mkdir(folder, { recursive: true })
  await link("@eventbus/core", "packages/core")
  await link("@eventbus/node", "packages/node")
  await link("effect", "node_modules/effect")
  await link("zod", "packages/node/node_modules/zod")
  await link("@types/node", "node_modules/@types/node")
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }))
  const sources = [
    ...under(head, { ...mistakes, ...prefixed(programs) }),
    ...under(nodeHead, { ...nodeMistakes, ...prefixed(nodePrograms) })
  ]
  await writeFile(join(folder, "shop.ts"), shop)
  await Promise.all(sources.map(([name, source]) => writeFile(join(folder, `${name}.ts`), source)))
  const compilerOptions = { noEmit: true, composite: false, declaration: false, declarationMap: false }
  const allowed = { rewriteRelativeImportExtensions: false, allowImportingTsExtensions: true, moduleDetection: "force" }
  const options = { ...compilerOptions, ...allowed }
  const modules = join(root, "packages/kafkajs/src/internal/kafkajsModules.d.ts")
  const files = [modules, "shop.ts", ...sources.map(([name]) => `${name}.ts`)]
  const config = { extends: join(root, "tsconfig.base.json"), compilerOptions: options, files }
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify(config))
  const output = await promisify(execFile)(join(root, "node_modules/.bin/tsc"), ["-p", folder, "--pretty", "false"], {
    cwd: folder
  }).then(
    ({ stdout }) => stdout,
    ({ stdout, stderr }: { stdout: string; stderr: string }) => stdout + stderr
  )
  for (const text of output.split(/\n(?! )/).filter((line) => line !== "")) {
    const [first = "", ...rest] = text.split("\n")
    const [, name, told] = /^(\w+)\.ts\(\d+,\d+\): error TS\d+: (.*)$/.exec(first) ?? ["", "elsewhere", first]
    if (!messages.has(name!))
      messages.set(
        name!,
        [told!, ...rest].map((line) => line.trim())
      )
  }
}, 60_000)

afterAll(() => rm(folder, { recursive: true, force: true }))

describe("a mistake that the compiler finds", () => {
  it.each(["misspelledGroup", "misspelledGroupOfBatches"] as const)("RCH-03 names a misspelled setting: %s", (name) => {
    const [first = ""] = messageOf(name)
    expect(first).toMatch(/^Object literal may only specify known properties, but 'groupID' does not exist in type/)
    expect(first).toMatch(/Did you mean to write 'groupId'\?$/)
  })

  it.each(["missingGroup", "missingGroupOfTransactions"] as const)("RCH-03 names a missing setting: %s", (name) => {
    expect(messageOf(name)[1]).toMatch(
      /^Property 'groupId' is missing in type .* but required in type '.*CommonSettings/
    )
  })

  it.each(["asyncHandler", "asyncBatchHandler"] as const)(
    "RCH-03 says what to do with an async handler: %s",
    (name) => {
      expect(messageOf(name).at(-1)).toMatch(
        /^Type 'Promise<void>' is not assignable to type '.*AsyncGoesInto_Effect_promise</
      )
    }
  )

  it("RCH-03 names the tag without a rule in one line", () => {
    expect(messageOf("missingTag").at(-1)).toBe(
      "Property 'CardDeclined' is missing in type '{ GatewayDown: Route.Route; }' but required in type 'RulePerTag<CardDeclined | GatewayDown>'."
    )
  })

  it("RCH-03 names the errors that have no rules", () => {
    expect(messageOf("missingRules")[1]).toMatch(
      /^Property 'onError' is missing .* required in type '{ readonly onError: ARuleForEachOf<CardDeclined \| GatewayDown>; }'\.$/
    )
  })

  it("RCH-03 says that a text is no duration", () => {
    expect(messageOf("unknownUnit")).toEqual([`Type '"5 moons"' is not assignable to type 'Time'.`])
  })

  it("RCH-03 names the service whose layer is missing", () => {
    expect(messageOf("missingLayer")[1]).toMatch(/ but required in type 'ProvideALayerFor<Billing>'\.$/)
  })

  it("RCH-03 says that a route is no function, and that a function is no route", () => {
    expect(messageOf("calledRoute")).toEqual([
      "This expression is not callable.",
      "No constituent of type 'Route' is callable."
    ])
    expect(messageOf("uncalledRoute").slice(0, 2)).toEqual([
      "Type '(reason?: string) => Route' is not assignable to type 'Rule<CardDeclined>'.",
      "Type '(reason?: string) => Route' is not assignable to type '(error: CardDeclined) => Route'."
    ])
  })

  it("RCH-03 says what to write for a handler that is a call of Effect.fn beside a rule that is a function", () => {
    expect(messageOf("effectFn")[1]).toMatch(/EffectFnGoesInto_an_arrow_function</)
  })
})

describe("a mistake in a program without Effect that the compiler finds", () => {
  it("RCH-03 names a misspelled setting, a missing one, and one with its unit in its name", () => {
    expect(messageOf("nodeMisspelledGroup")[0]).toMatch(
      /'groupID' does not exist .* Did you mean to write 'groupId'\?$/
    )
    expect(messageOf("nodeMissingGroup")[1]).toMatch(/^Property 'groupId' is missing in type/)
    expect(messageOf("nodeUnitInName")[0]).toMatch(/Did you mean to write 'sessionTimeout'\?$/)
  })

  it("RCH-03 says that a function is no route, and that rules are a list", () => {
    expect(messageOf("nodeUncalledRoute")[0]).toMatch(/^Argument of type '\(reason\?: .*\) => Route' is not assignable/)
    expect(messageOf("nodeRulesByTag")[0]).toMatch(/'CardDeclined' does not exist in type 'readonly ErrorRule\[\]'\.$/)
  })

  it.each(["nodeBareSchema", "nodeBareSchemaOfTopic"] as const)("RCH-03 says that a schema is no serde: %s", (name) => {
    expect(messageOf(name)[0]).toMatch(
      /^Property 'name' is missing in type 'ZodObject<.*' but required in type 'Serde</
    )
  })

  it("RCH-03 says that headers are a list", () => {
    expect(messageOf("nodeIndexedHeaders")).toEqual([
      "Element implicitly has an 'any' type because index expression is not of type 'number'."
    ])
  })
})

describe("a program without these mistakes", () => {
  it.each(Object.keys({ ...programs, ...nodePrograms }))("RCH-03 compiles: %s", (name) => {
    expect(messages.get(`good_${name}`) ?? []).toEqual([])
    expect(messages.get("elsewhere") ?? []).toEqual([])
  })
})

/** The files that begin with the same lines. */
function under(first: string, sources: Readonly<Record<string, string>>): ReadonlyArray<readonly [string, string]> {
  return Object.entries(sources).map(([name, source]) => [name, `${first}\n${source}\n`])
}

/** Their files do not take the names of mistakes. */
function prefixed(sources: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(sources).map(([name, source]) => [`good_${name}`, source]))
}
