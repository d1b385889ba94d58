/**
 * How a binding is told apart from all others of a program: by its cluster and its name (connector seed §9).
 */
import * as Defaults from "../../Defaults.ts"

/** The alias of a binding that names no cluster. */
export const defaultCluster = Defaults.binding.cluster

/** A binding by what names it. */
export interface Named {
  readonly name: string
  readonly cluster: string
}

/** `{cluster}:{binding}`. An alias has no colon in it, so no two bindings have the same key. */
export const of = ({ name, cluster }: Named): string => `${cluster}:${name}`

/** For people: the plain name, with the cluster only where it is not `default`. */
export const label = (binding: Named): string => (binding.cluster === defaultCluster ? binding.name : of(binding))

/** The binding of an event. */
export const onEvent = ({ name, cluster }: Named) => ({ cluster, binding: name })
