// Lays out the graph of the tasks, away from the page, which goes on meanwhile.

import dagre from './vendor/dagre.js';

addEventListener('message', ({ data: { nodes, edges, width, height } }) => {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: 'LR', nodesep: 10, edgesep: 6, ranksep: 60, marginx: 12, marginy: 12, ranker: 'tight-tree' });
  graph.setDefaultEdgeLabel(() => ({}));
  nodes.forEach((id) => graph.setNode(id, { width, height }));
  edges.forEach(([from, to]) => graph.setEdge(from, to));
  dagre.layout(graph);
  postMessage({
    nodes: nodes.map((id) => [id, graph.node(id).x, graph.node(id).y]),
    edges: graph.edges().map(({ v, w }) => [v, w, graph.edge(v, w).points.map(({ x, y }) => [x, y])]),
    width: graph.graph().width,
    height: graph.graph().height,
  });
});
