/**
 * The keys of entries about a binding or one of its retry tiers: `{word}/{cluster}/{group}/{binding}`, with `/{tier}` behind it for a tier.
 */
import type { Hold } from "../../FleetView.ts"
import { escaped, unescaped } from "../base/derivedNames.ts"

export type Address = Pick<Hold, "cluster" | "groupId" | "binding" | "tier">

export interface HoldKeys {
  readonly keyOf: (address: Address) => string
  /** Undefined for a key of another form. */
  readonly addressOf: (key: string) => Address | undefined
}

export const make = (word: "hold" | "released"): HoldKeys => {
  const form = new RegExp(`^${word}/([^/]+)/([^/]+)/([^/]+)(?:/(\\d{1,10}))?$`)
  return {
    keyOf: ({ cluster, groupId, binding, tier }) =>
      [word, ...[cluster, groupId, binding].map(escaped), ...(tier === undefined ? [] : [tier])].join("/"),
    addressOf: (key) => {
      const [, cluster, groupId, binding, tier] = form.exec(key) ?? []
      return cluster === undefined
        ? undefined
        : {
            ...{ cluster: unescaped(cluster), groupId: unescaped(groupId!), binding: unescaped(binding!) },
            tier: tier === undefined ? undefined : Number(tier)
          }
    }
  }
}
