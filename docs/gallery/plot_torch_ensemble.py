"""
A recalibrator inside a deep ensemble
=====================================

The networks of a deep ensemble run in PyTorch, on a GPU if there is one, and their
spread is too small. A recalibrator that was fitted to errors on other rows becomes a
part of the model: it is saved, moved and exported with it.
"""

import matplotlib.pyplot as plt
import torch

import sigmascale as ss
from sigmascale import plots

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"


def measure(n):
    """Return n rows, most of them near the origin, with noise of size 0.3."""
    x = torch.randn(n, 2, dtype=torch.float64, device=device)
    y = torch.sin(2 * x[:, 0]) + x[:, 1] ** 2 / 3
    return x, y + 0.3 * torch.randn_like(y)


# %%
# Five networks, trained from different starts on rows drawn again. The mean is the
# prediction, and the standard deviation the uncertainty; a recalibrator, if there is
# one, has the last word.


class DeepEnsemble(torch.nn.Module):
    """Some networks, and perhaps a recalibrator."""

    def __init__(self, n_members=5):
        super().__init__()
        self.members = torch.nn.ModuleList(
            torch.nn.Sequential(
                torch.nn.Linear(2, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)
            )
            for _ in range(n_members)
        )
        self.recalibrate = None

    def forward(self, x):
        """Return predictions and uncertainties."""
        y = torch.stack([member(x)[:, 0] for member in self.members])
        uncertainty = y.std(dim=0)
        if self.recalibrate is not None:
            uncertainty = self.recalibrate(uncertainty)
        return y.mean(dim=0), uncertainty


model = DeepEnsemble().double().to(device)
x, y = measure(300)
resampled = torch.randint(300, (len(model.members), 300), device=device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for _ in range(300):
    optimizer.zero_grad()
    loss = sum(
        ((member(x[some])[:, 0] - y[some]) ** 2).mean()
        for member, some in zip(model.members, resampled, strict=True)
    )
    loss.backward()
    optimizer.step()

# %%
# On rows that were not trained on, errors are several times as large as the spread
# says. The recalibrator is fitted to tensors, on their device, and becomes a module.

x, y = measure(2000)
with torch.no_grad():
    prediction, u = model(x)
scaler = ss.LinearScaling().fit(u, y - prediction)
print(scaler.describe())
model.recalibrate = ss.export.to_torch(scaler).to(device)

# %%
# On new rows, before and after.

x, y = measure(2000)
with torch.no_grad():
    prediction, honest = model(x)
    u = torch.stack([member(x)[:, 0] for member in model.members]).std(dim=0)
error = y - prediction
fig, axes = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
for ax, uncertainty, title in zip(
    axes, (u, honest), ("spread", "recalibrated"), strict=True
):
    result = ss.local_zms(error, uncertainty, n_bins=20, method="moments")
    plots.plot_local_zms(result, ax=ax)
    ax.set_title(f"{title}: <Z²> = {result.overall[0]:.2f}")

# %%
# The state of the model has the recalibrator's numbers beside the networks' weights,
# and the whole can be exported as one program.

print([name for name in model.state_dict() if name.startswith("recalibrate")])
program = torch.export.export(model, (x,))
