/**
 * Order per key of one binding, over all of its consumers: the counts of its units, and its parked keys.
 */
import * as Effect from "effect/Effect"
import type { Broker } from "../../Broker.ts"
import type { Consumer } from "../group/consumer.ts"
import * as Units from "../group/units.ts"
import type { EventHub } from "../observe/eventHub.ts"
import * as OrderMetrics from "../observe/orderMetrics.ts"
import * as ParkedCounts from "../order/parkedCounts.ts"
import * as ParkedKeys from "../parked/parkedKeys.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as BindingKey from "../settings/bindingKey.ts"

export const make = (
  definition: BindingDefinition<unknown>,
  broker: Broker["Service"],
  hub: EventHub,
  consumers: () => ReadonlyArray<Consumer>
) => {
  const unitCounts = OrderMetrics.unitCounts()
  const units = () => consumers().flatMap((consumer) => consumer.units?.running() ?? [])
  const parked = definition.orderingMode === "PER_KEY" ? () => ParkedCounts.of(units()) : undefined
  return {
    ...{ unitCounts, parked },
    metrics: parked && { parked, counts: unitCounts },
    parkedKeys: ParkedKeys.make({
      ...{ definition, broker, units, hasUnits: Units.areKept(definition) },
      onDecided: (given) =>
        Effect.sync(() => hub.emit({ _tag: "KeyDecided", ...BindingKey.onEvent(definition), ...given }))
    })
  }
}
