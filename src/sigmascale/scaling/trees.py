"""Small regression trees of binned columns, grown for a loss with two sums a leaf.

Boosters that learn from different rows of one table grow in step, a tree each at a
time. The histograms of all of them come from one product of sparse matrices: a row has
a one in its bin of each column, and each booster has a vector of what is to be summed.
SciPy does that at the speed of compiled boosters, and the trees are plain numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._support.checks import Floats, Ints
from .._support.weights import mean_of, spread_of
from ..bins.partitions import EqualSizeBins, LabelBins

Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Packed = npt.NDArray[Any]  # a number and a sum in one, see `Grower`
MISSING_CODE = 0  # of a missing value, or of a label that was not learned
CHUNK = 8192  # rows at a time, so that they stay in the cache


@dataclass(frozen=True)
class TreeOptions:
    """How trees grow.

    Attributes
    ----------
    depth : int
        Number of levels of splits.
    min_rows : int
        Least number of rows in a leaf.
    rate : float
        Share of the best step that a leaf takes.
    """

    depth: int
    min_rows: int
    rate: float


@dataclass(frozen=True)
class GammaLeaves:
    """Leaves of ratios of z² to their mean, under the gamma deviance with a log link.

    A leaf's step is ln((Σ ratio + k) / (n + k)), of ratios whose mean is 1: the
    maximum-likelihood step, shrunk towards 0, and finite when all ratios are 0.

    Attributes
    ----------
    pseudo_rows : float
        Strength of the shrinkage: rows with a ratio of 1 that each leaf gets for free.
    cap : float
        Up to which a ratio counts.
    """

    pseudo_rows: float
    cap: float

    def counted(self, ratio: Floats, seen: Bools, weights: Floats | None) -> Floats:
        """Return what counts of ratios that were seen, in units of their mean."""
        counted = np.minimum(ratio, self.cap)
        counted *= seen
        total = counted.sum() if weights is None else weights @ counted
        n_seen = seen.sum() if weights is None else weights @ seen
        counted /= (total / n_seen) or 1.0
        return counted

    def steps(self, count: Floats, total: Floats) -> Floats:
        """Return the best steps of leaves."""
        k = self.pseudo_rows
        return np.asarray(np.log((total + k) / (count + k)))

    def gains(self, count: Floats, total: Floats) -> Floats:
        """Return by how much leaves reduce the deviance, but for Σ - n.

        With q = (n + k) / (Σ + k), it is k q + n ln q, less k.
        """
        k = self.pseudo_rows
        q = count + k
        q /= total + k
        gain: Floats = np.log(q)
        gain *= count
        q *= k
        gain += q
        gain -= k
        return gain

    def left_over(self, ratio: Floats, steps: Floats, leaf: Any) -> Floats:
        """Return the ratios that are left after the step of their leaf."""
        return np.asarray(ratio * np.exp(-steps)[leaf])

    def chance(self, ratio: Floats, weights: Floats | None) -> float:
        """Return what a split by chance gains, in units of a chi-squared number."""
        counted = np.minimum(ratio, self.cap)
        return spread_of(counted / mean_of(counted, weights), weights) ** 2 / 2


@dataclass(frozen=True)
class SquaredLeaves:
    """Leaves of numbers of either sign, under squared differences.

    A leaf's step is Σ / (n + k). What is summed is positive, as packed sums must be:
    numbers between -cap and cap, brought to the range from 0 to 1.

    Attributes
    ----------
    pseudo_rows : float
        Strength of the shrinkage: rows of 0 that each leaf gets for free.
    cap : float
        Up to which size a number counts.
    """

    pseudo_rows: float
    cap: float

    def counted(self, numbers: Floats, seen: Bools, weights: Floats | None) -> Floats:
        """Return what counts of numbers that were seen, from 0 to 1."""
        counted = np.clip(numbers / (2 * self.cap), -0.5, 0.5)
        counted += 0.5
        counted *= seen
        return counted

    def steps(self, count: Floats, total: Floats) -> Floats:
        """Return the best steps of leaves."""
        means = (total - 0.5 * count) / (count + self.pseudo_rows)
        return np.asarray(2 * self.cap * means)

    def gains(self, count: Floats, total: Floats) -> Floats:
        """Return by how much leaves reduce the sum of squares."""
        sums = total - 0.5 * count
        sums *= sums
        sums /= count + self.pseudo_rows
        return sums

    def left_over(self, numbers: Floats, steps: Floats, leaf: Any) -> Floats:
        """Return the numbers that are left after the step of their leaf."""
        return np.asarray(numbers - steps[leaf])

    def chance(self, numbers: Floats, weights: Floats | None) -> float:
        """Return what a split by chance gains, in units of a chi-squared number."""
        return spread_of(np.clip(numbers / (2 * self.cap), -0.5, 0.5), weights) ** 2


Leaves = GammaLeaves | SquaredLeaves


@dataclass(frozen=True)
class TreesInStep:
    """One tree of each booster: complete, the children of node i are 2i+1 and 2i+2.

    Attributes
    ----------
    feature : array of int, shape (n_boosters, n_nodes)
        The column that a node looks at.
    left : array of bool, shape (n_boosters, n_nodes, n_codes)
        Whether a row with that code goes left; a node that does not split sends all
        rows left.
    value : array of shape (n_boosters, n_nodes + 1)
        The value of each leaf.
    leaf : array of int, shape (n_boosters, n_rows)
        The leaf of each row, those that a booster does not learn from too.
    """

    feature: Ints
    left: Bools
    value: Floats
    leaf: npt.NDArray[np.uint8 | np.uint16]


class Forest:
    """The trees of boosters in step, one after the other, in little memory."""

    def __init__(self, n_codes: int) -> None:
        self._n_codes = n_codes
        self._feature: list[Ints] = []
        self._left: list[Bytes] = []
        self._value: list[Floats] = []

    def add(self, trees: TreesInStep) -> None:
        """Keep trees, but not the leaf of each row; sides as bits."""
        self._feature.append(trees.feature)
        self._left.append(np.packbits(trees.left, axis=2))
        self._value.append(trees.value)

    def first(self, count: int) -> tuple[Ints, Bools, Floats]:
        """Return the columns, sides and values of the first trees of all boosters."""
        bits = np.concatenate(self._left[:count])
        left = np.unpackbits(bits, axis=2, count=self._n_codes).view(np.bool_)
        feature, value = self._feature[:count], self._value[:count]
        return np.concatenate(feature), left, np.concatenate(value)


class Grower:
    """Grows trees on the rows of one table.

    Parameters
    ----------
    codes : array of int, shape (n_rows, n_columns)
        The code of each row in each column, below 256.
    columns : sequence of EqualSizeBins or LabelBins
        What the codes stand for.
    seen : array of bool, shape (n_boosters, n_rows)
        The rows that each booster learns from.
    options : TreeOptions
        How trees grow.
    leaves : GammaLeaves or SquaredLeaves
        What a leaf gains, and its step.
    allowed : array of bool, shape (n_boosters, n_columns), optional
        The columns that each booster may look at; all if not given.
    weights : array of shape (n_rows,), optional
        Of the rows; 1 if not given.
    """

    def __init__(
        self,
        codes: Ints,
        columns: Sequence[EqualSizeBins | LabelBins],
        seen: Bools,
        options: TreeOptions,
        leaves: Leaves,
        allowed: Bools | None = None,
        weights: Floats | None = None,
    ) -> None:
        from scipy.sparse import csc_array

        self._options, self._leaves = options, leaves
        self._n_columns = len(columns)
        self._n_codes = max(column.n_codes for column in columns)
        if allowed is None:
            allowed = np.ones((seen.shape[0], len(columns)), dtype=bool)
        # a column with one bin, and nothing missing, cannot be split
        self._used = [
            j
            for j, column in enumerate(columns)
            if allowed[:, j].any()
            and (column.n_codes > 2 or (column.n_codes > 1 and not codes[:, j].all()))
        ]
        self._allowed = allowed[:, self._used]
        self._codes: Bytes = np.asfortranarray(codes[:, self._used].astype(np.uint8))
        self._labelled = np.array(
            [isinstance(columns[j], LabelBins) for j in self._used], dtype=bool
        )
        self._has_missing = (self._codes == MISSING_CODE).any(axis=0)
        self._seen = seen
        self._weights = weights
        self._n_seen = seen.sum(axis=1) if weights is None else seen @ weights
        # Sums of whole numbers are exact, and one number holds two of them: rows count
        # 2^shift each, and a number as the nearest multiple of 2^-digits. Of weighted
        # rows it is a complex number: weights count in its real part, numbers in the
        # other.
        n_bits = int(self._n_seen.max()).bit_length()
        self._digits = 52 - 2 * n_bits
        self._shift = 53 - n_bits
        n_rows, width = self._codes.shape
        places = np.arange(width, dtype=np.int32) * self._n_codes
        ones = np.ones(min(CHUNK, n_rows) * width)
        ends = np.arange(min(CHUNK, n_rows) + 1, dtype=np.int32) * width
        self._chunks = []
        for start in range(0, n_rows if width else 0, CHUNK):
            rows = slice(start, min(start + CHUNK, n_rows))
            bins = (self._codes[rows] + places).ravel()
            size = rows.stop - rows.start
            one_hot = csc_array(
                (ones[: bins.size], bins, ends[: size + 1]),
                shape=(width * self._n_codes, size),
            )
            self._chunks.append((rows, one_hot))

    def grow(self, current: Floats) -> TreesInStep:
        """Grow a tree of each booster on what is left; splits maximise the gain.

        Parameters
        ----------
        current : array of shape (n_boosters, n_rows)
            What leaves are about; rows that a booster has not seen do not count.

        Returns
        -------
        TreesInStep
        """
        n_boosters, n_rows = current.shape
        depth = self._options.depth
        n_nodes = 2**depth - 1
        trees = TreesInStep(
            np.zeros((n_boosters, n_nodes), dtype=np.int64),
            np.ones((n_boosters, n_nodes, self._n_codes), dtype=bool),
            np.zeros((n_boosters, n_nodes + 1)),
            np.zeros((n_boosters, n_rows), dtype=np.min_scalar_type(n_nodes)),
        )
        if not self._chunks:
            return trees
        packed = self._pack(current)
        whole = self._histograms(packed)
        sums = whole[:, :, 0].sum(axis=2)  # by booster and node
        for level in range(depth):
            splits = self._best_splits(whole, sums)
            if level == 0:
                is_split = splits.found[:, 0]
            self._descend(trees, splits, level)
            sides = [splits.left_sums, sums - splits.left_sums]
            sums = np.stack(sides, axis=2).reshape(n_boosters, -1)
            if level < depth - 1:
                # the larger child's histogram is what the smaller one's leaves over
                right = sums[:, 1::2] < sums[:, 0::2]
                smaller = 2 * np.arange(2**level) + right
                part = self._histograms(packed, trees.leaf, smaller)
                children = np.stack([part, whole - part], axis=2)
                children[right] = children[right][:, ::-1]
                whole = children.reshape(n_boosters, -1, *whole.shape[2:])
        count, total = self._unpack(sums)
        value = self._options.rate * self._leaves.steps(count, total)
        trees.value[is_split] = value[is_split]
        return trees

    def first_gains(self, current: Floats) -> Floats:
        """Return how much the best first split of each column gains.

        Parameters
        ----------
        current : array of shape (n_boosters, n_rows)
            As in :meth:`grow`.

        Returns
        -------
        array of shape (n_boosters, n_columns)
            Of all columns; 0 of those that cannot be split.
        """
        gains = np.zeros((current.shape[0], self._n_columns))
        if self._chunks:
            whole = self._histograms(self._pack(current))
            cuts = self._cuts(whole, whole[:, :, 0].sum(axis=2))
            width = len(self._used)
            best = cuts.gain.reshape(*cuts.gain.shape[:2], -1, self._n_codes - 1)
            best = best.max(axis=3)[:, 0]
            gains[:, self._used] = best[:, :width]
            with_missing = np.array(self._used)[self._has_missing]
            gains[:, with_missing] = np.maximum(gains[:, with_missing], best[:, width:])
        return np.maximum(gains, 0.0)

    def _pack(self, current: Floats) -> Packed:
        """Return what is summed: of each row and booster, the count and the number."""
        weights = self._weights
        packed: Packed = np.empty(
            current.shape[::-1], dtype=float if weights is None else complex
        )
        for k, (own, seen) in enumerate(zip(current, self._seen, strict=True)):
            counted = self._leaves.counted(own, seen, weights)
            counted *= 2.0**self._digits
            np.rint(counted, out=counted)
            if weights is None:
                packed[:, k] = counted + seen * 2.0**self._shift
            else:
                packed[:, k] = weights * (seen + 2.0**-self._digits * 1j * counted)
        return packed

    def _unpack(self, sums: Packed) -> tuple[Floats, Floats]:
        """Return numbers of rows, and sums of what counts of them."""
        if self._weights is not None:
            return sums.real.copy(), sums.imag.copy()
        count = np.floor(sums * 2.0**-self._shift)
        total = sums - count * 2.0**self._shift
        total *= 2.0**-self._digits
        return count, total

    def _histograms(
        self, packed: Packed, leaf: Any = None, which: Ints | None = None
    ) -> Packed:
        """Return the sums by booster, node, column and code.

        Without `leaf`, all rows are at the one node of each booster; else `which` says,
        of each booster, for which leaves histograms are wanted.
        """
        width, n_boosters = self._codes.shape[1], packed.shape[1]
        n_wanted = 1 if which is None else which.shape[1]
        shape = (n_wanted, width * self._n_codes, n_boosters)
        sums: Packed = np.zeros(shape, dtype=packed.dtype)
        if which is None:
            for rows, one_hot in self._chunks:
                sums[0] += one_hot @ packed[rows]
        else:
            leaf = np.ascontiguousarray(leaf.T)
            # one line of numbers is compared faster than many short ones
            tiled = np.tile(which.T[:, None].astype(leaf.dtype), (CHUNK, 1)).reshape(
                n_wanted, -1
            )
            for rows, one_hot in self._chunks:
                values, there = packed[rows].ravel(), leaf[rows].ravel()
                for own, wanted in zip(sums, tiled, strict=True):
                    chosen = values * (there == wanted[: there.size])
                    own += one_hot @ chosen.reshape(-1, n_boosters)
        by_booster = sums.transpose(2, 0, 1)
        return by_booster.reshape(n_boosters, n_wanted, width, self._n_codes)

    def _cuts(self, whole: Packed, sums: Packed) -> _Cuts:
        """Return every split of each node, and how much it gains."""
        n_boosters, n_nodes = whole.shape[:2]
        missing, present = whole[..., :1], whole[..., 1:]
        order = None
        if self._labelled.any():
            # the best split of labels is among those that keep the order of their means
            labels = present[:, :, self._labelled]
            count, total = self._unpack(labels)
            steps = self._leaves.steps(count, total)
            order = np.argsort(steps, axis=3, kind="stable")
            present = present.copy()
            present[:, :, self._labelled] = np.take_along_axis(labels, order, axis=3)
        left = np.cumsum(present, axis=3)
        # where values are missing, each split is tried twice: they may go left, too
        both = self._has_missing
        allowed = self._allowed
        if both.any():
            with_missing = left[:, :, both] + missing[:, :, both]
            left = np.concatenate([left, with_missing], axis=2)
            allowed = np.concatenate([allowed, allowed[:, both]], axis=1)
        left = left.reshape(n_boosters, n_nodes, -1)
        n_left, t_left = self._unpack(left)
        n_all, t_all = self._unpack(sums[:, :, None])
        gain = self._leaves.gains(n_left, t_left)
        n_right, t_right = n_all - n_left, np.subtract(t_all, t_left, out=t_left)
        gain += self._leaves.gains(n_right, t_right)
        gain -= self._leaves.gains(n_all, t_all)
        gain[np.minimum(n_left, n_right) < self._options.min_rows] = -np.inf
        if not allowed.all():
            refused = np.repeat(~allowed, present.shape[3], axis=1)
            gain[np.broadcast_to(refused[:, None], gain.shape)] = -np.inf
        return _Cuts(gain, left, n_left, n_right, order)

    def _best_splits(self, whole: Packed, sums: Packed) -> _Splits:
        """Return the best split of each node: its column, and which codes go left."""
        width, n_codes = whole.shape[2:]
        missing = whole[..., :1]
        cuts = self._cuts(whole, sums)
        gain, left, order = cuts.gain, cuts.left, cuts.order
        both = np.flatnonzero(self._has_missing)
        at = np.argmax(gain, axis=2)
        splits = _Splits(
            np.zeros(at.shape, dtype=bool),
            np.zeros(at.shape, dtype=np.int64),
            np.ones((*at.shape, n_codes), dtype=bool),
            sums.copy(),
        )
        for node in np.ndindex(at.shape):
            best = (*node, at[node])
            if not gain[best] > 0:
                continue
            line, cut = divmod(int(at[node]), n_codes - 1)
            column = line if line < width else int(both[line - width])
            codes = np.arange(n_codes - 1)
            if order is not None and self._labelled[column]:
                codes = order[(*node, self._labelled[:column].sum())]
            goes_left = splits.goes_left[node]
            goes_left[1 + codes[cut + 1 :]] = False
            # values missing only at prediction time follow the larger side
            goes_left[MISSING_CODE] = (
                line >= width
                if missing[(*node, column, 0)]
                else cuts.n_left[best] >= cuts.n_right[best]
            )
            splits.found[node] = True
            splits.column[node] = column
            splits.left_sums[node] = left[best]
        return splits

    def _descend(self, trees: TreesInStep, splits: _Splits, level: int) -> None:
        """Keep the splits of a level, and send all rows to its children."""
        nodes = slice(2**level - 1, 2 ** (level + 1) - 1)
        trees.feature[:, nodes] = np.array(self._used)[splits.column]
        trees.left[:, nodes] = splits.goes_left
        for booster, leaf in enumerate(trees.leaf):
            goes_left = np.zeros(leaf.size, dtype=bool)
            for node in range(2**level):
                here = self._go_left(splits, (booster, node))
                if level:
                    here &= leaf == node
                goes_left |= here
            leaf *= 2
            leaf += ~goes_left

    def _go_left(self, splits: _Splits, node: tuple[int, int]) -> Bools:
        """Return which rows a node would send to the left."""
        column, left = splits.column[node], splits.goes_left[node]
        codes = self._codes[:, column]
        if not splits.found[node]:
            return np.ones(codes.size, dtype=bool)
        here: Bools
        if self._labelled[column]:
            here = left[codes]
        else:  # a comparison of bytes is much faster than a look-up
            n_left = int(left[1:].sum())
            # without the missing code, 0 - 1 is 255
            missing_left = bool(left[MISSING_CODE])
            here = codes <= n_left if missing_left else codes - np.uint8(1) < n_left
        return here


@dataclass(frozen=True)
class _Cuts:
    """All splits, by booster, node and cut; the cuts of a column follow each other.

    Columns with missing values come twice, the second time with these on the left.

    Attributes
    ----------
    gain : array
        By how much a split reduces the deviance; minus infinity if it is refused.
    left, n_left, n_right : array
        The packed sums of rows that go left, and how many go left and right.
    order : array of int or None
        Of labels, by booster, node and column of labels.
    """

    gain: Floats
    left: Packed
    n_left: Floats
    n_right: Floats
    order: Ints | None


@dataclass(frozen=True)
class _Splits:
    """The splits of one level, by booster and node.

    Attributes
    ----------
    found : array of bool
        Whether the node is split at all.
    column : array of int
        Which of the columns that are used decides.
    goes_left : array of bool, with the codes as third dimension
        Which codes go left.
    left_sums : array
        The packed sums of the rows that go left.
    """

    found: Bools
    column: Ints
    goes_left: Bools
    left_sums: Packed
