/** Small charts, with their content in words for those who do not see them. */
const width = 240
const height = 48

interface ChartProps {
  readonly values: ReadonlyArray<number>
  readonly label: string
}

/** A line of values, the oldest to the left. */
export const Line = ({ values, label }: ChartProps) => {
  const most = Math.max(1, ...values)
  const step = width / Math.max(1, values.length - 1)
  const points = values.map(
    (value, index) => `${(index * step).toFixed(1)},${(height - (value / most) * (height - 4) - 2).toFixed(1)}`
  )
  return (
    <svg class="chart" role="img" aria-label={label} viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none">
      <polyline points={points.join(" ")} fill="none" />
    </svg>
  )
}

/** One bar for each value. */
export const Bars = ({ values, label }: ChartProps) => {
  const most = Math.max(1, ...values)
  const wide = 96 / Math.max(1, values.length)
  return (
    <svg class="bars" role="img" aria-label={label} viewBox="0 0 96 20" preserveAspectRatio="none">
      {values.map((value, index) => {
        const tall = value === 0 ? 1 : Math.max(3, (value / most) * 20)
        return <rect key={index} x={index * wide} y={20 - tall} width={wide - 1} height={tall} />
      })}
    </svg>
  )
}
