import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import * as Package from "@eventbus/outbox"
import * as KafkaRelay from "@eventbus/outbox/KafkaRelay"
import * as EffectPackage from "effect"
import { describe, expect, it } from "vitest"

const guide = readFileSync(fileURLToPath(new URL("../../docs/outbox.md", import.meta.url)), "utf8")
const modules: Readonly<Record<string, object | undefined>> = { ...EffectPackage, ...Package, KafkaRelay }

describe("docs/outbox.md", () => {
  it("names only modules and functions that exist", () => {
    const named = Array.from(guide.matchAll(/`([A-Z][a-z]\w*)(?:\.(\w+))?/g), ([, module = "", member]) => ({
      module,
      member
    }))
    expect(named.length).toBeGreaterThan(10)
    const missing = named.filter(({ module, member }) => {
      const found = modules[module]
      return found === undefined || (member !== undefined && !(member in found))
    })
    expect(missing).toEqual([])
  })
})
