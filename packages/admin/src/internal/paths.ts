/**
 * The paths of the routes.
 */

import { checkRoutes } from "./optionChecks.ts"

interface Options {
  readonly prefix?: `/${string}`
  readonly probes?: `/${string}`
}

export interface Paths {
  readonly prefix: `/${string}`
  readonly live: `/${string}`
  readonly ready: `/${string}`
  readonly metrics: `/${string}`
  /** Whether a path, without its query, is one of these routes. */
  readonly has: (path: string) => boolean
}

/** Throws `ConfigurationValidation` where an option cannot be used. */
export const make = (options: Options): Paths => {
  checkRoutes(options)
  const { prefix = "/eventbus", probes = "/" } = options
  const below = (path: string): `/${string}` => `${withoutSlash(probes)}${path}` as `/${string}`
  const top = withoutSlash(prefix) as `/${string}`
  const [live, ready, metrics] = [below("/health/live"), below("/health/ready"), below("/metrics")]
  return {
    ...{ prefix: top, live, ready, metrics },
    has: (path) => path === top || path.startsWith(`${top}/`) || [live, ready, metrics].some((each) => each === path)
  }
}

const withoutSlash = (path: string): string => path.replace(/\/+$/, "")
