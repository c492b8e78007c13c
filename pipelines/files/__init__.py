"""Files on local disks, in object stores and wherever else Beam reaches, and claims on output folders."""
